#define SIMIC_LEVEL "avx512"
#define SIMIC_TABLE avx512_kernels
#include "level.hpp"
