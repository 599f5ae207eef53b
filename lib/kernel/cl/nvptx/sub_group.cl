// The sub-group functions of cl_khr_subgroups on GPUs: a sub-group is the whole work-group, so that each is its
// work-group function by another name.
#include "../fold.h"

DEFINE_SCOPE(sub_group)

#define DEFINE_SUB_GROUP_BROADCAST(T)                                                                  \
    COLLECTIVE T sub_group_broadcast(T x, uint id) {                                                   \
        return sub_group_broadcast_from(x, get_local_linear_id() == id);                               \
    }
FOR_COLLECTIVE_TYPES(DEFINE_SUB_GROUP_BROADCAST)
DEFINE_SUB_GROUP_BROADCAST(half)

BUILTIN uint get_sub_group_size(void) { return (uint)polder_linear_local_size(); }
BUILTIN uint get_max_sub_group_size(void) {
    return (uint)(get_enqueued_local_size(0) * get_enqueued_local_size(1) * get_enqueued_local_size(2));
}
BUILTIN uint get_num_sub_groups(void) { return 1; }
BUILTIN uint get_enqueued_num_sub_groups(void) { return 1; }
BUILTIN uint get_sub_group_id(void) { return 0; }
BUILTIN uint get_sub_group_local_id(void) { return (uint)get_local_linear_id(); }
