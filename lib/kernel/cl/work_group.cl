// Work-group collective functions (OpenCL C 6.15.16).
#include "fold.h"

DEFINE_SCOPE(work_group)

#define DEFINE_WORK_GROUP_BROADCAST(T)                                                                 \
    COLLECTIVE T work_group_broadcast(T x, size_t id) {                                                \
        return work_group_broadcast_from(x, get_local_id(0) == id);                                    \
    }                                                                                                  \
    COLLECTIVE T work_group_broadcast(T x, size_t id_x, size_t id_y) {                                 \
        return work_group_broadcast_from(x, get_local_id(0) == id_x && get_local_id(1) == id_y);       \
    }                                                                                                  \
    COLLECTIVE T work_group_broadcast(T x, size_t id_x, size_t id_y, size_t id_z) {                    \
        return work_group_broadcast_from(                                                              \
            x, get_local_id(0) == id_x && get_local_id(1) == id_y && get_local_id(2) == id_z);         \
    }
FOR_COLLECTIVE_TYPES(DEFINE_WORK_GROUP_BROADCAST)
