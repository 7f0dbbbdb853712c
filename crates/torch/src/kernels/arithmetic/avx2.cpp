#define SIMIC_LEVEL "avx2"
#define SIMIC_TABLE avx2_kernels
#include "level.hpp"
