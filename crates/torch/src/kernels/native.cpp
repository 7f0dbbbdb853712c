// All C++ of the engine as one translation unit: reading libtorch's headers takes longer than compiling what is here.

// First what the others use: `guarded`, which stands around everything that Rust calls, then the choice of kernels.
#include "../torch/memory.cpp"
#include "../torch/shim.cpp"

#include "dispatch.cpp"
#include "nodes.cpp"

#include "blocks.cpp"
#include "fused.cpp"

#include "batch.cpp"
#include "backward.cpp"
#include "gradients.cpp"
#include "update.cpp"
