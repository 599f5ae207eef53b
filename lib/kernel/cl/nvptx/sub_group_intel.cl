// Intel's sub-group functions on GPUs: a sub-group is a warp.
#define POLDER_WARPS
#include "../sub_group_intel.cl"
