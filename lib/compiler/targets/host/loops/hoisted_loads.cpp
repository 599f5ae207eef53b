// A load moves into the loop if all its uses there are in one block, and this block runs once in each iteration of a loop over work-items.
// Each work-item then reads the address once, as before, so it sees a single value even if another work-group writes to it. No instruction from
// the load to the end of the loop may write to the address.
#include "hoisted_loads.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

bool is_over_items(const llvm::Loop& loop) { return llvm::findOptionMDForLoop(&loop, items_tag) != nullptr; }

// A load before a loop, and the two instructions that repeat its value in all lanes.
struct Hoisted {
    llvm::LoadInst* load = nullptr;
    llvm::Instruction* insertion = nullptr;  // both null when the load is of a vector
    llvm::Instruction* repetition = nullptr;

    [[nodiscard]] llvm::Instruction* value() const { return repetition ? repetition : load; }
};

std::optional<Hoisted> as_hoisted(llvm::LoadInst& load) {
    using namespace llvm::PatternMatch;
    if (!load.isSimple())
        return std::nullopt;
    if (load.getType()->isVectorTy())
        return Hoisted{&load};
    auto* insertion = load.hasOneUse() ? llvm::dyn_cast<llvm::InsertElementInst>(load.user_back()) : nullptr;
    if (!insertion || !insertion->hasOneUse() ||
        !match(insertion, m_InsertElt(m_Undef(), m_Specific(&load), m_ZeroInt())))
        return std::nullopt;
    auto* repetition = llvm::dyn_cast<llvm::ShuffleVectorInst>(insertion->user_back());
    if (!repetition || !repetition->isZeroEltSplat())
        return std::nullopt;
    return Hoisted{&load, insertion, repetition};
}

class HoistedLoads {
public:
    HoistedLoads(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
        : loops_(analyses.getResult<llvm::LoopAnalysis>(function)),
          aliases_(analyses.getResult<llvm::AAManager>(function)),
          target_(analyses.getResult<llvm::TargetIRAnalysis>(function)) {}

    unsigned run() {
        unsigned moved = 0;
        for (llvm::Loop* loop : loops_.getLoopsInPreorder())
            if (is_over_items(*loop) && loop->getLoopPreheader())
                moved += move_into(*loop);
        return moved;
    }

private:
    // Half of the vector registers. Up to this many loads stay before the loop.
    [[nodiscard]] size_t kept_max() const {
        return target_.getNumberOfRegisters(target_.getRegisterClassForType(true)) / 2;
    }

    unsigned move_into(const llvm::Loop& loop) {
        llvm::MapVector<llvm::BasicBlock*, llvm::SmallVector<Hoisted>> users;
        for (llvm::Instruction& instruction : *loop.getLoopPreheader())
            if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
                if (const auto hoisted = as_hoisted(*load))
                    if (llvm::BasicBlock* user = only_user(*hoisted->value(), loop))
                        users[user].push_back(*hoisted);
        unsigned moved = 0;
        for (auto& [block, all] : users) {
            if (all.size() <= kept_max())
                continue;
            llvm::BatchAAResults aliases(aliases_);
            const llvm::SmallVector<llvm::Instruction*> writers = writers_in(loop);
            for (const Hoisted& hoisted : all)
                if (!is_written(*hoisted.load, writers, aliases)) {
                    move_to(*block, hoisted, loop);
                    ++moved;
                }
        }
        return moved;
    }

    // The block of all uses in `loop`; null when there are several such blocks, when it may run more than once for a work-item, or when a phi
    // uses the value.
    llvm::BasicBlock* only_user(const llvm::Instruction& value, const llvm::Loop& loop) const {
        llvm::BasicBlock* only = nullptr;
        for (const llvm::User* user : value.users()) {
            const auto* instruction = llvm::cast<llvm::Instruction>(user);
            auto* block = const_cast<llvm::BasicBlock*>(instruction->getParent());
            if (!loop.contains(block))
                continue;
            if (llvm::isa<llvm::PHINode>(instruction) || (only && only != block))
                return nullptr;
            only = block;
        }
        return only && is_over_items(*loops_.getLoopFor(only)) ? only : nullptr;
    }

    static llvm::SmallVector<llvm::Instruction*> writers_in(const llvm::Loop& loop) {
        llvm::SmallVector<llvm::Instruction*> writers;
        for (llvm::BasicBlock* block : loop.blocks())
            for (llvm::Instruction& instruction : *block)
                if (instruction.mayWriteToMemory())
                    writers.push_back(&instruction);
        return writers;
    }

    static bool is_written(llvm::LoadInst& load, llvm::ArrayRef<llvm::Instruction*> writers,
                           llvm::BatchAAResults& aliases) {
        const llvm::MemoryLocation place = llvm::MemoryLocation::get(&load);
        const auto writes = [&](const llvm::Instruction* instruction) {
            return llvm::isModSet(aliases.getModRefInfo(instruction, place));
        };
        for (const llvm::Instruction* next = load.getNextNode(); next != nullptr; next = next->getNextNode())
            if (next->mayWriteToMemory() && writes(next))
                return true;
        return llvm::any_of(writers, writes);
    }

    static void move_to(llvm::BasicBlock& block, const Hoisted& hoisted, const llvm::Loop& loop) {
        llvm::Instruction* const value = hoisted.value();
        llvm::Instruction* first = nullptr;
        for (llvm::Instruction& instruction : block)
            if (llvm::is_contained(instruction.operands(), value)) {
                first = &instruction;
                break;
            }
        const auto copy = [&](llvm::Instruction& original) {
            llvm::Instruction* made = original.clone();
            made->insertBefore(first->getIterator());
            return made;
        };
        // A base with a constant offset is an addressing mode of the access, so the address is computed here, too.
        llvm::Instruction* const load = copy(*hoisted.load);
        if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(hoisted.load->getPointerOperand());
            address && address->hasAllConstantIndices()) {
            llvm::Instruction* own = address->clone();
            own->insertBefore(load->getIterator());
            load->replaceUsesOfWith(address, own);
        }
        llvm::Instruction* now = load;
        if (hoisted.repetition) {
            llvm::Instruction* insertion = copy(*hoisted.insertion);
            insertion->replaceUsesOfWith(hoisted.load, load);
            now = copy(*hoisted.repetition);
            now->replaceUsesOfWith(hoisted.insertion, insertion);
        }
        value->replaceUsesWithIf(now, [&](const llvm::Use& use) {
            return loop.contains(llvm::cast<llvm::Instruction>(use.getUser())->getParent());
        });
        llvm::RecursivelyDeleteTriviallyDeadInstructions(value);
    }

    const llvm::LoopInfo& loops_;
    llvm::AAResults& aliases_;
    const llvm::TargetTransformInfo& target_;
};

// Elements of constant memory, such as the coefficients of a polynomial, which LLVM repeats in all lanes before any loop. Nothing writes to
// them, so they may move into each block that uses them, in loops of the kernel as well. There an
// element is loaded once for all uses. LLVM's register allocator would load a value that it keeps on the stack for each use.
class HoistedConstants {
public:
    HoistedConstants(llvm::Function& function, llvm::FunctionAnalysisManager& analyses)
        : loops_(analyses.getResult<llvm::LoopAnalysis>(function)) {
        const auto& target = analyses.getResult<llvm::TargetIRAnalysis>(function);
        kept_max_ = target.getNumberOfRegisters(target.getRegisterClassForType(true)) * 7 / 8;
        for (llvm::Instruction& instruction : llvm::instructions(function))
            if (auto* repetition = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction);
                repetition && loaded_by(*repetition))
                add_users(*repetition);
    }

    unsigned run() {
        unsigned moved = 0;
        for (auto& [block, repetitions] : users_)
            if (repetitions.size() > kept_max_)
                for (llvm::ShuffleVectorInst* repetition : repetitions) {
                    move_to(*block, *repetition);
                    ++moved;
                }
        return moved;
    }

private:
    static llvm::LoadInst* loaded_by(const llvm::ShuffleVectorInst& repetition) {
        using namespace llvm::PatternMatch;
        llvm::Value* value = nullptr;
        if (!repetition.isZeroEltSplat() ||
            !match(repetition.getOperand(0), m_InsertElt(m_Undef(), m_Value(value), m_ZeroInt())))
            return nullptr;
        auto* load = llvm::dyn_cast<llvm::LoadInst>(value);
        return load && load->isSimple() && load->hasMetadata(llvm::LLVMContext::MD_invariant_load) ? load : nullptr;
    }

    void add_users(llvm::ShuffleVectorInst& repetition) {
        llvm::SmallSetVector<llvm::BasicBlock*, 4> blocks;
        for (llvm::User* user : repetition.users()) {
            auto* const block = llvm::cast<llvm::Instruction>(user)->getParent();
            const llvm::Loop* const loop = loops_.getLoopFor(block);
            if (loop && !loop->contains(&repetition) && !llvm::isa<llvm::PHINode>(user))
                blocks.insert(block);
        }
        for (llvm::BasicBlock* block : blocks)
            users_[block].push_back(&repetition);
    }

    static void move_to(llvm::BasicBlock& block, llvm::ShuffleVectorInst& repetition) {
        const auto uses = [&](const llvm::Instruction& instruction) {
            return !llvm::isa<llvm::PHINode>(instruction) && llvm::is_contained(instruction.operands(), &repetition);
        };
        const auto first = llvm::find_if(block, uses);
        auto* const insertion = llvm::cast<llvm::Instruction>(repetition.getOperand(0));
        llvm::Instruction* last = nullptr;
        for (llvm::Instruction* original : {llvm::cast<llvm::Instruction>(loaded_by(repetition)), insertion,
                                            llvm::cast<llvm::Instruction>(&repetition)}) {
            llvm::Instruction* const copy = original->clone();
            copy->insertBefore(first);
            if (last)
                copy->setOperand(original == insertion ? 1 : 0, last);
            last = copy;
        }
        repetition.replaceUsesWithIf(last, [&](const llvm::Use& use) {
            const auto* user = llvm::cast<llvm::Instruction>(use.getUser());
            return user->getParent() == &block && !llvm::isa<llvm::PHINode>(user);
        });
    }

    const llvm::LoopInfo& loops_;
    size_t kept_max_ = 0;
    llvm::MapVector<llvm::BasicBlock*, llvm::SmallVector<llvm::ShuffleVectorInst*>> users_;
};

}  // namespace

unsigned load_in_loops(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    const unsigned constants = HoistedConstants(function, analyses).run();
    return constants + HoistedLoads(function, analyses).run();
}

}  // namespace polder::compiler::workgroup
