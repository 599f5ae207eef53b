#include "warps.h"

#include <array>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsNVPTX.h>

namespace polder::compiler {
namespace {

constexpr unsigned oldest_with_reductions = 80;
// shfl.sync: all 32 work-items are one segment.
constexpr uint32_t whole_segment = warp_size - 1;

constexpr const char* has_reductions_function = "_polder_warp_has_reductions";

struct WarpInstruction {
    llvm::StringRef name;
    llvm::Intrinsic::ID intrinsic;
    enum class Kind : uint8_t { plain, ballot, shuffle, reduction } kind = Kind::plain;
};
constexpr std::array warp_instructions{
    WarpInstruction{"_polder_warp_active", llvm::Intrinsic::nvvm_activemask},
    WarpInstruction{"_polder_warp_ballot", llvm::Intrinsic::nvvm_vote_ballot_sync, WarpInstruction::Kind::ballot},
    WarpInstruction{"_polder_warp_shuffle", llvm::Intrinsic::nvvm_shfl_sync_idx_i32, WarpInstruction::Kind::shuffle},
    WarpInstruction{"_polder_warp_sync", llvm::Intrinsic::nvvm_bar_warp_sync},
    WarpInstruction{"_polder_warp_reduce_add", llvm::Intrinsic::nvvm_redux_sync_add, WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_min", llvm::Intrinsic::nvvm_redux_sync_min, WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_max", llvm::Intrinsic::nvvm_redux_sync_max, WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_umin", llvm::Intrinsic::nvvm_redux_sync_umin,
                    WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_umax", llvm::Intrinsic::nvvm_redux_sync_umax,
                    WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_and", llvm::Intrinsic::nvvm_redux_sync_and, WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_or", llvm::Intrinsic::nvvm_redux_sync_or, WarpInstruction::Kind::reduction},
    WarpInstruction{"_polder_warp_reduce_xor", llvm::Intrinsic::nvvm_redux_sync_xor, WarpInstruction::Kind::reduction},
};

bool has_reductions(llvm::StringRef processor) {
    unsigned number = 0;
    return processor.consume_front("sm_") && !processor.consumeInteger(10, number) && number >= oldest_with_reductions;
}

llvm::Value* result_of(llvm::CallInst& call, const WarpInstruction& instruction, bool reduces) {
    using Kind = WarpInstruction::Kind;
    // Only reached where has_reductions_function returns true, which LLVM sees.
    if (instruction.kind == Kind::reduction && !reduces)
        return llvm::PoisonValue::get(call.getType());
    llvm::IRBuilder<> at(&call);
    llvm::SmallVector<llvm::Value*> arguments(call.args());
    if (instruction.kind == Kind::ballot)
        arguments[1] = at.CreateIsNotNull(arguments[1]);
    if (instruction.kind == Kind::shuffle)
        arguments.push_back(at.getInt32(whole_segment));
    return at.CreateIntrinsic(call.getType(), instruction.intrinsic, arguments);
}

template <class Replacement>
void replace_calls(llvm::Function& function, Replacement replacement) {
    for (llvm::User* user : llvm::make_early_inc_range(function.users())) {
        auto& call = *llvm::cast<llvm::CallInst>(user);
        llvm::Value* const value = replacement(call);
        if (!call.getType()->isVoidTy())
            call.replaceAllUsesWith(value);
        call.eraseFromParent();
    }
}

}  // namespace

void replace_warp_functions(llvm::Module& module, const std::string& processor) {
    const bool reduces = has_reductions(processor);
    for (const WarpInstruction& instruction : warp_instructions)
        if (llvm::Function* const function = module.getFunction(instruction.name))
            replace_calls(*function, [&](llvm::CallInst& call) { return result_of(call, instruction, reduces); });
    if (llvm::Function* const function = module.getFunction(has_reductions_function))
        replace_calls(*function,
                      [&](llvm::CallInst& call) { return llvm::ConstantInt::get(call.getType(), reduces ? 1 : 0); });
}

}  // namespace polder::compiler
