// Blocks in images on GPUs: a sub-group is a warp, and a descriptor lies within the kernel's arguments.
#define POLDER_WARPS
#define POLDER_DESCRIPTOR_SPACE __private
#include "../image_block.cl"
