// In a loop whose iterations begin with a load at an index that is a variable of the loop:
// - the end of the loop, which tests whether it goes on, is repeated for each path that leads there;
// - where the path has stored at the index of the next iteration's load, that number goes on to it;
// - other paths load behind their test.
// Indices are compared as sums of a value and a constant. They wrap around as the program's do.
#include "stack_tops.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ValueMapper.h>
#include <optional>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

// The end of the loop is repeated so often, with so many instructions besides phis.
constexpr size_t paths_max = 8, repeated_max = 4;

struct Index {
    llvm::Value* base = nullptr;
    llvm::APInt offset;

    [[nodiscard]] bool operator==(const Index& other) const {
        return base == other.base && offset.getBitWidth() == other.offset.getBitWidth() && offset == other.offset;
    }
};

Index index_of(llvm::Value* value) {
    llvm::Value* base = nullptr;
    const llvm::APInt* offset = nullptr;
    if (match(value, m_Add(m_Value(base), m_APInt(offset))))
        return {base, *offset};
    return {value, llvm::APInt(value->getType()->getScalarSizeInBits(), 0)};
}

// An element of a private array. `extension`: of the index to the width of addresses; null where it has that width.
struct Element {
    llvm::GetElementPtrInst* address = nullptr;
    llvm::AllocaInst* array = nullptr;
    llvm::CastInst* extension = nullptr;
    Index index;
};

std::optional<Element> element_of(llvm::Value* address) {
    auto* const element = llvm::dyn_cast<llvm::GetElementPtrInst>(address);
    auto* const array = element ? llvm::dyn_cast<llvm::AllocaInst>(element->getPointerOperand()) : nullptr;
    if (array == nullptr || element->getNumIndices() != 1)
        return std::nullopt;
    llvm::Value* const index = element->getOperand(1);
    auto* const extension =
        llvm::isa<llvm::ZExtInst, llvm::SExtInst>(index) ? llvm::cast<llvm::CastInst>(index) : nullptr;
    return Element{element, array, extension, index_of(extension ? extension->getOperand(0) : index)};
}

bool have_same_form(const Element& left, const Element& right) {
    const auto opcode = [](const Element& one) {
        return one.extension ? static_cast<unsigned>(one.extension->getOpcode()) : 0U;
    };
    return left.array == right.array && opcode(left) == opcode(right) &&
           left.address->getSourceElementType() == right.address->getSourceElementType() &&
           left.index.offset.getBitWidth() == right.index.offset.getBitWidth();
}

// Whether no other pointer than those that are computed from `address` leads to the array.
bool is_only_accessed(const llvm::Value& address) {
    return llvm::all_of(address.users(), [&](const llvm::User* user) {
        if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(user))
            return store->getValueOperand() != &address;
        if (llvm::isa<llvm::GetElementPtrInst>(user))
            return is_only_accessed(*user);
        const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(user);
        return llvm::isa<llvm::LoadInst, llvm::MemIntrinsic>(user) ||
               (intrinsic != nullptr && intrinsic->isLifetimeStartOrEnd());
    });
}

// Whether `instruction` writes to another object than an array to which no other pointers lead.
bool writes_elsewhere(const llvm::Instruction& instruction, const llvm::AllocaInst& array) {
    const auto* const change = llvm::dyn_cast<llvm::AtomicRMWInst>(&instruction);
    const llvm::Value* const address =
        change ? change->getPointerOperand() : llvm::getLoadStorePointerOperand(&instruction);
    const llvm::Value* const object = address ? llvm::getUnderlyingObject(address) : nullptr;
    return object != nullptr && object != &array && llvm::isa<llvm::AllocaInst, llvm::Argument, llvm::LoadInst>(object);
}

// What is stored in `wanted` by the time control leaves `block` for the end of the loop; null when that is not known.
llvm::Value* stored_in(const Element& wanted, const llvm::LoadInst& load, llvm::BasicBlock* block) {
    const llvm::Type* const type = load.getType();
    for (; block != nullptr; block = block->getSinglePredecessor()) {
        for (llvm::Instruction& instruction : llvm::reverse(*block)) {
            if (&instruction == &load)
                return nullptr;
            if (!instruction.mayWriteToMemory() || writes_elsewhere(instruction, *wanted.array))
                continue;
            auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
            if (store == nullptr)
                return nullptr;
            const auto written = element_of(store->getPointerOperand());
            if (!written || !store->isSimple() || !have_same_form(*written, wanted) ||
                store->getValueOperand()->getType() != type || written->index.base != wanted.index.base)
                return nullptr;
            if (written->index == wanted.index)
                return store->getValueOperand();
        }
        if (block == load.getParent())
            return nullptr;
    }
    return nullptr;
}

class StackLoop {
public:
    explicit StackLoop(llvm::Loop& loop)
        : loop_(loop), header_(*loop.getHeader()), preheader_(loop.getLoopPreheader()), end_(loop.getLoopLatch()) {}

    // Finds loads whose place is known in some path.
    bool has_known_tops() {
        if (!has_repeatable_end())
            return false;
        for (llvm::Instruction& instruction : header_) {
            if (instruction.mayWriteToMemory() || !llvm::isGuaranteedToTransferExecutionToSuccessor(&instruction))
                break;
            if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
                look_at(*load);
        }
        return !tops_.empty();
    }

    unsigned keep(llvm::DominatorTree& dominators, llvm::LoopInfo& loops) {
        llvm::formLCSSA(loop_, dominators, &loops, nullptr);
        repeat_end();
        for (Top& top : tops_)
            add_phi(top);
        for (const Top& top : tops_) {
            top.load->replaceAllUsesWith(top.phi);
            llvm::Value* const address = top.load->getPointerOperand();
            top.load->eraseFromParent();
            llvm::RecursivelyDeleteTriviallyDeadInstructions(address);
        }
        return static_cast<unsigned>(tops_.size());
    }

private:
    struct Top {
        llvm::LoadInst* load;
        Element element;
        llvm::PHINode* index;  // whose sum with a constant is the place
        llvm::SmallVector<llvm::Value*> stored;  // for each path; null when it is not known
        llvm::PHINode* phi = nullptr;  // replaces the load
    };

    bool has_repeatable_end() {
        if (end_ == nullptr || end_ == &header_ || preheader_ == nullptr || !loop_.isInnermost())
            return false;
        const auto* const branch = llvm::dyn_cast<llvm::BranchInst>(end_->getTerminator());
        if (branch == nullptr || !branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1) ||
            !loop_.isLoopExiting(end_))
            return false;
        size_t repeated = 0;
        for (const llvm::Instruction& instruction : *end_) {
            const bool is_counted = !llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator();
            if (is_counted && (++repeated > repeated_max || instruction.mayReadOrWriteMemory() ||
                               llvm::isa<llvm::CallBase>(instruction)))
                return false;
        }
        for (llvm::BasicBlock* const block : llvm::predecessors(end_)) {
            if (!llvm::isa<llvm::BranchInst>(block->getTerminator()) || llvm::is_contained(paths_, block))
                return false;
            paths_.push_back(block);
        }
        return paths_.size() > 1 && paths_.size() <= paths_max;
    }

    void look_at(llvm::LoadInst& load) {
        const auto element = load.isSimple() ? element_of(load.getPointerOperand()) : std::nullopt;
        auto* const index = element ? llvm::dyn_cast<llvm::PHINode>(element->index.base) : nullptr;
        if (index == nullptr || index->getParent() != &header_ || !is_only_accessed(*element->array))
            return;
        // Loads and stores with different indices are then apart.
        const llvm::DataLayout& layout = load.getDataLayout();
        if (layout.getTypeStoreSize(load.getType()) > layout.getTypeAllocSize(element->address->getSourceElementType()))
            return;
        auto* const next = index->getIncomingValueForBlock(end_);
        const auto* const last = llvm::dyn_cast<llvm::Instruction>(next);
        const bool is_of_end = last != nullptr && last->getParent() == end_;
        if (is_of_end && !llvm::isa<llvm::PHINode>(next))
            return;
        Top top{&load, *element, index, {}, nullptr};
        for (llvm::BasicBlock* const path : paths_) {
            Element wanted = *element;
            const Index sum =
                index_of(is_of_end ? llvm::cast<llvm::PHINode>(next)->getIncomingValueForBlock(path) : next);
            wanted.index = {sum.base, sum.offset + element->index.offset};
            top.stored.push_back(stored_in(wanted, load, path));
        }
        if (llvm::any_of(top.stored, [](const llvm::Value* value) { return value != nullptr; }))
            tops_.push_back(std::move(top));
    }

    void repeat_end() {
        for (llvm::BasicBlock*& path : paths_) {
            auto* const copy =
                llvm::BasicBlock::Create(end_->getContext(), end_->getName() + ".path", end_->getParent(), end_);
            llvm::ValueToValueMapTy values;
            for (llvm::Instruction& instruction : *end_) {
                if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
                    values[phi] = phi->getIncomingValueForBlock(path);
                    continue;
                }
                llvm::Instruction* const repeated = instruction.clone();
                repeated->insertInto(copy, copy->end());
                llvm::RemapInstruction(repeated, values, llvm::RF_NoModuleLevelChanges | llvm::RF_IgnoreMissingLocals);
                values[&instruction] = repeated;
            }
            path->getTerminator()->replaceSuccessorWith(end_, copy);
            for (llvm::BasicBlock* const next : llvm::successors(copy))
                for (llvm::PHINode& phi : next->phis()) {
                    llvm::Value* const value = phi.getIncomingValueForBlock(end_);
                    const auto mapped = values.find(value);
                    phi.addIncoming(mapped == values.end() ? value : static_cast<llvm::Value*>(mapped->second), copy);
                }
            path = copy;
        }
        for (llvm::BasicBlock* const next : llvm::successors(end_))
            next->removePredecessor(end_, true);
        end_->dropAllReferences();
        end_->eraseFromParent();
    }

    // A block between the path's test and the next iteration.
    llvm::BasicBlock& before_next(llvm::BasicBlock*& path) {
        if (path->getSingleSuccessor() == &header_)
            return *path;
        auto* const between =
            llvm::BasicBlock::Create(path->getContext(), path->getName() + ".next", path->getParent(), &header_);
        llvm::BranchInst::Create(&header_, between);
        path->getTerminator()->replaceSuccessorWith(&header_, between);
        header_.replacePhiUsesWith(path, between);
        path = between;
        return *between;
    }

    static llvm::Value* load_at(llvm::BasicBlock& block, const Top& top, llvm::Value* index) {
        llvm::IRBuilder<> at(block.getTerminator());
        llvm::Value* place = at.CreateAdd(index, at.getInt(top.element.index.offset));
        if (top.element.extension != nullptr)
            place = at.CreateCast(top.element.extension->getOpcode(), place, top.element.extension->getType());
        llvm::Value* const address =
            at.CreateGEP(top.element.address->getSourceElementType(), top.element.array, place);
        auto* const load = at.CreateAlignedLoad(top.load->getType(), address, top.load->getAlign(), "top");
        load->copyMetadata(*top.load);
        return load;
    }

    void add_phi(Top& top) {
        llvm::IRBuilder<> at(&header_, header_.begin());
        top.phi = at.CreatePHI(top.load->getType(), static_cast<unsigned>(paths_.size() + 1), "top");
        for (size_t i = 0; i < paths_.size(); ++i) {
            llvm::Value* value = top.stored[i];
            if (value == nullptr) {
                llvm::BasicBlock& block = before_next(paths_[i]);
                value = load_at(block, top, top.index->getIncomingValueForBlock(&block));
            }
            top.phi->addIncoming(value, paths_[i]);
        }
        top.phi->addIncoming(load_at(*preheader_, top, top.index->getIncomingValueForBlock(preheader_)), preheader_);
    }

    llvm::Loop& loop_;
    llvm::BasicBlock& header_;
    llvm::BasicBlock* const preheader_;
    llvm::BasicBlock* const end_;
    llvm::SmallVector<llvm::BasicBlock*> paths_;  // lead to the end; later its copies
    llvm::SmallVector<Top> tops_;
};

// Changes one loop. The analyses do not describe the function afterwards.
unsigned keep_in_one_loop(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* const loop : loops.getLoopsInPreorder())
        if (StackLoop stack(*loop); stack.has_known_tops())
            return stack.keep(dominators, loops);
    return 0;
}

}  // namespace

unsigned keep_stack_tops(llvm::Function& function) {
    unsigned kept = 0;
    while (const unsigned more = keep_in_one_loop(function))
        kept += more;
    return kept;
}

}  // namespace polder::compiler
