// All C++ of the engine as one translation unit: reading libtorch's headers takes longer than compiling what is here.

// First: its `guarded` stands around everything that Rust calls.
#include "shim.cpp"

#include "dispatch.cpp"
#include "fused.cpp"
