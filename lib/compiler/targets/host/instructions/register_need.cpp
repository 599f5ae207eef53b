// Constants are not counted.
#include "register_need.h"

#include "machine/host.h"
#include "targets/host/workgroup/vectorizer/estimates/registers_alive.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler {
namespace {

constexpr size_t long_block_min = 400;  // vector instructions
constexpr size_t word_bits = 32;  // a sub-group has as many work-items as a register has words

size_t vector_registers(const llvm::Value& value) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(value.getType());
    if (type == nullptr || type->getScalarSizeInBits() == 1 || llvm::isa<llvm::Constant>(value))
        return 0;
    return llvm::divideCeil(type->getPrimitiveSizeInBits().getFixedValue(), host().sub_group_size * word_bits);
}

size_t all_registers() { return host().has_wide_registers ? 32 : 16; }

size_t registers_needed(const llvm::BasicBlock& block) { return registers_alive(block, vector_registers); }

bool is_long_vector_code(const llvm::BasicBlock& block) {
    return block.size() >= long_block_min && llvm::count_if(block, [](const llvm::Instruction& each) {
                                                 return vector_registers(each) > 0;
                                             }) >= static_cast<ptrdiff_t>(long_block_min);
}

}  // namespace

bool is_best_in_order(const llvm::Function& function) {
    bool has_long_block = false;
    for (const llvm::BasicBlock& block : function)
        if (is_long_vector_code(block)) {
            if (registers_needed(block) > all_registers() / 3)
                return false;
            has_long_block = true;
        }
    return has_long_block;
}

bool may_store_registers(const llvm::Function& function) {
    return llvm::any_of(function, [](const llvm::BasicBlock& block) {
        return block.size() > all_registers() / 2 && registers_needed(block) > all_registers() / 2;
    });
}

}  // namespace polder::compiler
