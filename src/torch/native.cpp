// All C++ of the engine as one translation unit: reading libtorch's headers takes longer than compiling what is here.

// First what the others use: the choice of kernels, then `guarded`, which stands around everything that Rust calls.
#include "dispatch.cpp"
#include "memory.cpp"

#include "shim.cpp"

#include "nodes.cpp"

#include "blocks.cpp"
#include "fused.cpp"

#include "batch.cpp"
#include "backward.cpp"
#include "update.cpp"
