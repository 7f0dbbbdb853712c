// All kernels with the instructions of the unit that includes this, as the table `SIMIC_TABLE`.

#include "block.hpp"
#include "math.hpp"
#include "table.hpp"

namespace simic {

extern const Kernels SIMIC_TABLE = {
    SIMIC_LEVEL,
    pack,
    pack_backwards,
    block_scratch_forward,
    block_scratch_backward,
    block_forward,
    block_activate,
    block_backward,
    block_folded,
    block_fold,
};

}  // namespace simic
