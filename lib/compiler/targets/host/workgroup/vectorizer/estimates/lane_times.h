// How long instructions of one vector of work-items take: the latency until the result is there, and the work, in which no other instruction of that kind
// starts. In cycles.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <optional>

namespace polder::compiler::workgroup {

struct LaneTime {
    double work = 0, latency = 0;
};

class LaneTimes {
public:
    // `lanes`: of one vector.
    LaneTimes(const LaneShapes& shapes, LaneAccesses& accesses, unsigned lanes, const LaneTarget& prices)
        : shapes_(shapes), accesses_(accesses), lanes_(lanes), prices_(prices) {}

    // Of an instruction that varies between lanes. Nothing where it is repeated for each lane: its code grows with the lanes.
    [[nodiscard]] std::optional<LaneTime> of(llvm::Instruction& instruction);

private:
    [[nodiscard]] std::optional<LaneTime> of_call(const llvm::CallBase& call) const;
    [[nodiscard]] std::optional<LaneTime> of_access(llvm::Instruction& instruction);
    [[nodiscard]] std::optional<LaneTime> of_whole_numbers(const llvm::Instruction& division) const;
    [[nodiscard]] double registers(const llvm::Type& type) const;
    [[nodiscard]] double for_division(const llvm::Type& type) const;
    [[nodiscard]] double for_root(const llvm::Type& type) const;

    const LaneShapes& shapes_;
    LaneAccesses& accesses_;
    const unsigned lanes_;
    const LaneTarget& prices_;
};

}  // namespace polder::compiler::workgroup
