// Work-item functions that are computed from the intrinsics (OpenCL C 6.15.1).
//
// The intrinsics return 0 for ids and offsets, and 1 for sizes, beyond the launch's dimensions, so that one
// formula is right for every work_dim. A group's origin is counted in whole ("enqueued") groups: only the last
// group of a dimension may be smaller.
#include "common.h"

BUILTIN size_t get_global_id(uint dimension) {
    return get_group_id(dimension) * get_enqueued_local_size(dimension) + get_local_id(dimension) +
           get_global_offset(dimension);
}

BUILTIN size_t get_local_linear_id(void) {
    return (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0);
}

static inline size_t global_id_without_offset(uint dimension) {
    return get_group_id(dimension) * get_enqueued_local_size(dimension) + get_local_id(dimension);
}

BUILTIN size_t get_global_linear_id(void) {
    return (global_id_without_offset(2) * get_global_size(1) + global_id_without_offset(1)) *
               get_global_size(0) +
           global_id_without_offset(0);
}
