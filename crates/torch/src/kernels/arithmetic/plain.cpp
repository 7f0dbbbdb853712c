#define SIMIC_LEVEL "plain"
#define SIMIC_TABLE plain_kernels
#include "level.hpp"
