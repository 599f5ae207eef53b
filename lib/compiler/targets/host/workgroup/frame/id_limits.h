// How large numbers are that follow from ids of work-items. LLVM sees the limits of a group's first id in usual launches (frame/usual_launches.h), and those
// of local ids in groups of a known size, but not what the launch says of others.
#pragma once

#include <cstdint>
#include <optional>

namespace llvm {
class Function;
class Instruction;
class Value;
}  // namespace llvm

namespace polder::compiler::workgroup {

class IdLimits {
public:
    explicit IdLimits(const llvm::Function& work_group_function);

    // Whether the number, of any type, is known not to be negative.
    [[nodiscard]] bool is_not_negative(const llvm::Value& value) const;

private:
    [[nodiscard]] std::optional<uint64_t> most(const llvm::Value& value, unsigned depth = 0) const;
    [[nodiscard]] std::optional<uint64_t> most_of(const llvm::Instruction& operation, unsigned depth) const;

    const bool are_launches_usual_;
};

// Divides numbers that are not negative by positive constants without a sign: `(int)get_global_id(0) % 4` is one `and`.
void divide_without_signs(llvm::Function& function, const IdLimits& limits);

}  // namespace polder::compiler::workgroup
