// All kernels with the instructions of the unit that includes this, as the table `SIMIC_TABLE`.

#include "batch.hpp"
#include "block.hpp"
#include "dense.hpp"
#include "losses.hpp"
#include "seed.hpp"
#include "table.hpp"
#include "update.hpp"

namespace simic {

extern const Kernels SIMIC_TABLE = {
    SIMIC_LEVEL,
    conv_packed_floats,
    conv_pack,
    block_scratch_forward,
    block_scratch_backward,
    block_forward,
    block_activate,
    block_backward,
    block_folded,
    block_fold,
    pool,
    head_scratch,
    head_forward,
    head_backward,
    layer_scratch_forward,
    layer_scratch_backward,
    layer_forward,
    layer_backward,
    norm_scratch,
    norm_forward,
    norm_backward,
    excite_scratch,
    excite_forward,
    excite_backward,
    gather_images,
    cross_entropy,
    add_validation,
    sum_of_squares,
    sgd,
    adamw,
};

}  // namespace simic
