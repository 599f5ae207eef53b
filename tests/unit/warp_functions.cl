// The sub-group functions of GPUs as code for the host, for warp_test.cpp, which has the instructions of a warp as functions.
#include "nvptx/sub_group.cl"
