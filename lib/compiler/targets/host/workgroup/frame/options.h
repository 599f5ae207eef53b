// The options of the work-group pass, and its report about lanes. Plain values.
#pragma once

#include "arguments.h"

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Whether neighbouring work-items may become the lanes of vectors. For tests: `wherever_possible`, with explicit vectors split into their elements,
// and `with_whole_vectors`, the same with whole vectors. `later`: the same loops as for lanes, but one work-item after the other.
enum class Lanes : uint8_t { none, later, where_they_pay, wherever_possible, with_whole_vectors };

struct WorkGroupOptions {
    std::string name;  // symbol of the function to make
    std::vector<ArgumentSlot> arguments;  // one per parameter of the kernel
    // Specialise for this size of a whole work-group; the function must be called with no other.
    // The kernel's reqd_work_group_size has the same effect.
    std::optional<std::array<uint64_t, 3>> local_size;
    // Whether groups at the ends of the range may be smaller.
    enum class Ends : uint8_t { ragged, whole } ends = Ends::ragged;
    // The processor that will run the code; null: a generic one of the module's triple.
    llvm::TargetMachine* target_machine = nullptr;
    Lanes lanes = Lanes::where_they_pay;
    // How many vectors of lanes run at once: 1, 2 or 4, fewer where a known number of work-items is no multiple. 0: as interleaving.h says.
    unsigned vectors = 0;
    // Work-items of a sub-group: 4, 8, 16, 32 or 64. The kernel's intel_reqd_sub_group_size replaces this.
    unsigned sub_group_size = 8;
};

// The work-items of a dimension whose size is known that are enough for lanes of a kernel's own vectors of four numbers.
inline constexpr unsigned rows_for_lanes = 4;

// How the loops over work-items were compiled.
struct LaneReport {
    unsigned loops = 0;  // loops whose work-items are lanes
    unsigned scalar_loops = 0;  // loops that run one work-item at a time
    std::string reason;  // why the first of `scalar_loops`, or the whole kernel, has no lanes: a clause for the user
    bool is_too_long = false;  // a loop over work-items was too long to be compiled in lanes
    // The kernel's own vectors stay whole, because lanes of their elements are estimated to be slower.
    bool keeps_vectors = false;
    // Functions without a vector form, which the code calls for one lane after the other. Functions on rare paths are left out.
    std::set<std::string> serial_calls;
    unsigned width = 0;  // lanes
    unsigned vectors = 1;  // the most of them that run at once
    unsigned dimension = 0;
    // Where there are none: the dimension of which there may be some in code for work-groups that have rows_for_lanes work-items in it or more; 0: none.
    unsigned other_dimension = 0;
    double estimate =
        0;  // the time with lanes as a part of the time without, by lane_cost; 0 where it was not estimated
};

}  // namespace polder::compiler::workgroup
