#include "group_order.h"

#include "abi.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

struct IdLoad {
    llvm::LoadInst* load;
    unsigned dimension;
};

llvm::SmallVector<IdLoad> loads_of(llvm::Argument& ids) {
    llvm::SmallVector<IdLoad> loads;
    const llvm::DataLayout& layout = ids.getParent()->getParent()->getDataLayout();
    llvm::SmallVector<std::pair<llvm::Value*, uint64_t>> addresses{{&ids, 0}};
    while (!addresses.empty()) {
        const auto [address, offset] = addresses.pop_back_val();
        for (llvm::User* user : address->users()) {
            if (auto* load = llvm::dyn_cast<llvm::LoadInst>(user)) {
                loads.push_back({load, static_cast<unsigned>(offset / 8)});
                continue;
            }
            auto* gep = llvm::cast<llvm::GetElementPtrInst>(user);
            llvm::APInt further(64, 0);
            [[maybe_unused]] const bool is_constant = gep->accumulateConstantOffset(layout, further);
            assert(is_constant);
            addresses.emplace_back(gep, offset + further.getZExtValue());
        }
    }
    return loads;
}

}  // namespace

void follow_lanes_with_groups(LoweredKernel& kernel) {
    const unsigned first = kernel.order[0];
    if (first == 0)
        return;
    llvm::Function& function = *kernel.function;
    const llvm::SmallVector<IdLoad> loads = loads_of(*function.getArg(abi::group_id));
    llvm::IRBuilder<> at(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    const auto word = [&](unsigned argument, uint64_t offset) {
        llvm::Value* const address = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), function.getArg(argument), offset);
        llvm::LoadInst* const load = at.CreateAlignedLoad(at.getInt64Ty(), address, llvm::Align(8));
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(load->getContext(), {}));
        return load;
    };
    // The group's number in the dimensions up to `first`, with x fastest. Then the number is split again, with `first` fastest.
    Extent counts{}, ids{};
    llvm::Value* number = nullptr;
    for (unsigned d = 0; d <= first; ++d)
        counts[d] = word(abi::context, abi::num_groups + uint64_t{8} * d);
    for (unsigned d = first + 1; d-- > 0;) {
        llvm::Value* const id = word(abi::group_id, uint64_t{8} * d);
        number = number ? at.CreateAdd(at.CreateMul(number, counts[d], "", true, true), id, "", true, true) : id;
    }
    for (unsigned d : kernel.order) {
        if (d > first)
            continue;
        const bool is_last = d == (first == 1 ? 0U : 1U);
        ids[d] = is_last ? number : at.CreateURem(number, counts[d]);
        number = is_last ? number : at.CreateUDiv(number, counts[d]);
    }
    for (const IdLoad& one : loads)
        if (one.dimension <= first) {
            one.load->replaceAllUsesWith(ids[one.dimension]);
            one.load->eraseFromParent();
        }
}

}  // namespace polder::compiler::workgroup
