// Pipes on GPUs: those of the host, with warps as sub-groups.
#define POLDER_WARPS
#include "../pipe.cl"
