// The backward pass of a graph, on the calling thread.
//
// libtorch's own engine serves many devices and threads; its locks, thread-local states, callbacks and checks cost small
// networks more than their arithmetic, and on CUDA one of its threads serves all envs of a device. Here the nodes are
// called one after another, those furthest from the leaves first, in the stream that is current: the one in which the
// graph was made. Nodes of libtorch's operators are called in the way in which its engine calls them; hooks are refused.

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

namespace {

using torch::autograd::AccumulateGrad;

// A node and the gradients of its outputs, as far as they have arrived.
struct Reached {
  Node* node;
  uint64_t distance;
  variable_list grads;
};

// Gradients that meet are added, in place where the first is not shared.
void add_to(Tensor& sum, Tensor grad) {
  if (!sum.defined()) sum = std::move(grad);
  else if (is_unshared(sum) && sum.is_non_overlapping_and_dense()) sum.add_(grad);
  else sum = sum + grad;
}

// Takes over a gradient that is not shared and is laid out as its parameter; the rest is libtorch's. A leaf's gradient is
// added to in place, so it is never shared.
void add_to_leaf(AccumulateGrad& leaf, Tensor grad) {
  Tensor& sum = leaf.variable.mutable_grad();
  if (!sum.defined() && !is_unshared(grad)) grad = grad.clone();
  const bool is_taken_over = !sum.defined() && grad.sizes() == leaf.variable.sizes() && grad.strides() == leaf.variable.strides();
  if (is_taken_over) sum = std::move(grad);
  else leaf.apply({std::move(grad)});
}

void refuse_hooks(Node& node) {
  TORCH_CHECK(node.pre_hooks().empty() && node.tensor_pre_hooks().empty() && node.post_hooks().empty() &&
                  node.retains_grad_hooks().empty() && !node.tensor_post_acc_grad_hooks(),
              "the engine's backward pass calls no hooks, but ", node.name(), " has one");
}

variable_list through(Node& node, variable_list&& grads) {
  variable_list out;
  if (auto* ours = dynamic_cast<KernelNode*>(&node)) {
    out = ours->apply(std::move(grads));
  } else {
    // The graph is walked once: what a node has kept it need not copy.
    node.will_release_variables();
    out = node(std::move(grads));
    torch::autograd::validate_outputs(node.next_edges(), out, [&](const std::string& text) { return node.name() + ": " + text; });
  }
  node.release_variables();
  return out;
}

void run_backward(const Tensor& objective) {
  TORCH_CHECK(objective.numel() == 1 && objective.grad_fn() != nullptr,
              "a backward pass must begin at a number that was computed from parameters");
  at::AutoGradMode no_graph_of_gradients(false);
  // Few nodes are reached and not yet passed at any time.
  std::vector<Reached> front;
  const auto reach = [&](const torch::autograd::Edge& edge, Tensor grad) {
    Node* node = edge.function.get();
    refuse_hooks(*node);
    if (auto* leaf = dynamic_cast<AccumulateGrad*>(node)) return add_to_leaf(*leaf, std::move(grad));
    auto at = std::find_if(front.begin(), front.end(), [&](const Reached& r) { return r.node == node; });
    if (at == front.end()) at = front.insert(at, {node, node->topological_nr(), variable_list(node->num_inputs())});
    add_to(at->grads[edge.input_nr], std::move(grad));
  };
  // The gradient that has arrived at an edge, if the node that computes its next gradient can add it there.
  const auto take_begun = [&](const torch::autograd::Edge& edge) {
    auto at = std::find_if(front.begin(), front.end(), [&](const Reached& r) { return r.node == edge.function.get(); });
    if (at == front.end()) return Tensor();
    Tensor& sum = at->grads[edge.input_nr];
    const bool is_ready = sum.defined() && is_unshared(sum) && sum.is_contiguous(at::MemoryFormat::ChannelsLast);
    return is_ready ? std::move(sum) : Tensor();
  };
  Tensor one = is_served(objective) ? new_grad(objective) : at::ones_like(objective);
  if (is_served(objective)) *write(one) = 1;
  reach(torch::autograd::impl::gradient_edge(objective), std::move(one));
  while (!front.empty()) {
    // All nodes that this one's gradients come from are further from the leaves, so they have been passed.
    auto next = std::max_element(front.begin(), front.end(), [](const Reached& a, const Reached& b) { return a.distance < b.distance; });
    Reached reached = std::move(*next);
    front.erase(next);
    if (auto* block = dynamic_cast<BlockNode*>(reached.node)) block->begun = take_begun(block->next_edge(0));
    variable_list grads = through(*reached.node, std::move(reached.grads));
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i].defined() && reached.node->next_edge(i).is_valid()) reach(reached.node->next_edge(i), std::move(grads[i]));
  }
}

}  // namespace

extern "C" {

// Adds to the gradients of all parameters from which `objective`, a number, was computed. Releases the graph.
char* simic_backward(const Tensor* objective) {
  return guarded([&] { run_backward(*objective); });
}

}  // extern "C"
