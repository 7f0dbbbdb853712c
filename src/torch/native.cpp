// All C++ of the engine as one translation unit: reading libtorch's headers takes longer than compiling what is here.

#include "narrow_conv.cpp"
#include "shim.cpp"
