// Intrinsics: functions without a body in any library. The work-group pass (lib/compiler/targets/host/workgroup) replaces calls of
// them. Names are mangled as for spir64.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace polder::compiler {

inline constexpr std::array<std::string_view, 14> work_group_intrinsics{"_Z12get_local_idj",
                                                                        "_Z12get_group_idj",
                                                                        "_Z13get_global_idj",
                                                                        "_Z14get_local_sizej",
                                                                        "_Z14get_num_groupsj",
                                                                        "_Z15get_global_sizej",
                                                                        "_Z17get_global_offsetj",
                                                                        "_Z12get_work_dimv",
                                                                        "_Z23get_enqueued_local_sizej",
                                                                        "_Z20get_global_linear_idv",
                                                                        "_Z19get_local_linear_idv",
                                                                        "_Z7barrierj",
                                                                        "_Z18work_group_barrierj",
                                                                        "_Z18work_group_barrierj12memory_scope"};

[[nodiscard]] inline bool is_work_group_intrinsic(std::string_view name) {
    return std::find(work_group_intrinsics.begin(), work_group_intrinsics.end(), name) != work_group_intrinsics.end() ||
           (name.substr(0, 8) == "_polder_" && name.substr(0, 14) != "_polder_table_");
}

[[nodiscard]] inline bool is_barrier_intrinsic(std::string_view name) {
    return name == "_Z7barrierj" || name.starts_with("_Z18work_group_barrierj");
}

}  // namespace polder::compiler
