// What a load or store costs whose lanes are apart, so that it is a gather or a scatter. The unit is that of lane_cost.
//
// Where the processor gathers quickly, the price depends on what the lanes access. A gather of 16 elements that the first cache holds takes 8
// to 12 cycles, hardly more than 16 loads. It is slow where the caches are: rows of a matrix, one for each lane, are often a power of two bytes
// apart, so that their lines displace each other (decision 148). And it cannot take what an earlier scatter has not written to the cache yet.
#pragma once

#include "lane_plan.h"
#include "lane_shape.h"

namespace polder::compiler::workgroup {

// Whether a gather of 16 elements takes about as long as 16 loads.
enum class Gathers : uint8_t { slow, quick };

// The cost of a load or store of all lanes in any place. One under a mask cannot be split into accesses for each lane.
[[nodiscard]] double cost_of_access_apart(unsigned lanes, bool is_masked);

// Whether a load or store may access memory other than private and local variables.
[[nodiscard]] bool is_in_buffer(const llvm::Instruction& access);

// For one loop over work-items, which must not change while this object lives.
class ApartCosts {
public:
    ApartCosts(const LanePlan& plan, const LaneShapes& shapes, Gathers gathers)
        : plan_(plan), shapes_(shapes), gathers_(gathers) {}

    [[nodiscard]] double of(const llvm::Instruction& access, unsigned lanes);

private:
    [[nodiscard]] bool is_linear(const llvm::Value* value);
    [[nodiscard]] bool has_linear_operands(const llvm::Instruction& instruction);
    [[nodiscard]] bool is_row_of_its_own(const llvm::Instruction& access);
    [[nodiscard]] bool is_read_and_written_in_turns(const llvm::Instruction& access) const;
    [[nodiscard]] bool is_left_one_by_one(const llvm::Instruction& access) const;

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    const Gathers gathers_;
    llvm::DenseMap<const llvm::Value*, bool> linear_;
};

}  // namespace polder::compiler::workgroup
