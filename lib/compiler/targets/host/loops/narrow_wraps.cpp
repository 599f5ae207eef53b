// Collects the questions whether numbers wrap around in a loop, and looks for those that LLVM would leave out because of a wider one. LLVM itself is asked which:
// a version that compares widths leaves out none, so nothing changes then.
#include "narrow_wraps.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PassManager.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler {
namespace {

constexpr size_t questions_max = 64;  // of a loop; all pairs are compared

// The instructions of `loop` of which LLVM's vectorizer asks how they grow: addresses, the numbers that iterations pass on, and what the loop ends by, with all that
// they are computed from. Scalar evolution takes quadratic time for long chains of products and sums, which are most often none of these.
llvm::SmallPtrSet<const llvm::Instruction*, 32> examined_in(const llvm::Loop& loop) {
    llvm::SmallPtrSet<const llvm::Instruction*, 32> found;
    llvm::SmallVector<const llvm::Instruction*> left;
    const auto add = [&](const llvm::Value* value) {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
        if (instruction != nullptr && instruction->getType()->isIntOrPtrTy() && loop.contains(instruction) &&
            found.insert(instruction).second)
            left.push_back(instruction);
    };
    for (const llvm::PHINode& phi : loop.getHeader()->phis())
        add(&phi);
    for (const llvm::BasicBlock* const block : loop.blocks()) {
        for (const llvm::Instruction& instruction : *block)
            if (instruction.mayReadOrWriteMemory())
                for (const llvm::Value* const operand : instruction.operands())
                    if (operand->getType()->isPtrOrPtrVectorTy())
                        add(operand);
        if (loop.isLoopExiting(block))
            for (const llvm::Value* const operand : block->getTerminator()->operands())
                add(operand);
    }
    while (!left.empty()) {
        const llvm::Instruction* const instruction = left.pop_back_val();
        for (const llvm::Value* const operand : instruction->operands())
            add(operand);
    }
    return found;
}

class Questions {
public:
    Questions(llvm::Loop& loop, llvm::ScalarEvolution& evolution) : loop_(loop), evolution_(evolution) {
        const llvm::SmallPtrSet<const llvm::Instruction*, 32> examined = examined_in(loop);
        for (llvm::BasicBlock* const block : loop.blocks())
            for (llvm::Instruction& instruction : *block) {
                if (numbers_.size() > questions_max)
                    return;  // each further one would take longer, as sums of many numbers do
                if (examined.contains(&instruction))
                    add(instruction);
            }
        if (numbers_.empty())
            return;
        llvm::SmallVector<const llvm::SCEVPredicate*, 4> predicates;
        evolution.getPredicatedBackedgeTakenCount(&loop, predicates);
        for (const llvm::SCEVPredicate* const predicate : predicates)
            add(*predicate, nullptr);
    }

    // Whether the loop changes.
    bool hide_those_left_out() {
        llvm::SmallSetVector<llvm::Instruction*, 4> hidden;
        bool is_hopeless = numbers_.size() > questions_max;
        if (!is_hopeless)
            for (const auto& [question, numbers] : numbers_)
                if (is_left_out(*question)) {
                    is_hopeless |= numbers.empty();
                    hidden.insert(numbers.begin(), numbers.end());
                }
        for (llvm::Instruction* const number : hidden)
            hide(*number);
        if (is_hopeless)
            llvm::addStringMetadataToLoop(&loop_, "llvm.loop.vectorize.enable", 0);
        return is_hopeless || !hidden.empty();
    }

private:
    void add(llvm::Instruction& instruction) {
        const llvm::SCEV* const value = evolution_.getSCEV(&instruction);
        if (llvm::isa<llvm::SCEVAddRecExpr>(value) || evolution_.isLoopInvariant(value, &loop_))
            return;
        llvm::SmallVector<const llvm::SCEVPredicate*, 4> predicates;
        if (evolution_.convertSCEVToAddRecWithPredicates(value, &loop_, predicates) == nullptr)
            return;
        for (const llvm::SCEVPredicate* const predicate : predicates)
            add(*predicate, &instruction);
    }

    void add(const llvm::SCEVPredicate& predicate, llvm::Instruction* from) {
        const auto* const wrap = llvm::dyn_cast<llvm::SCEVWrapPredicate>(&predicate);
        if (wrap == nullptr || !wrap->getExpr()->getType()->isIntegerTy())
            return;
        auto& numbers = numbers_[wrap];
        if (from != nullptr && is_extended(*from, bits_of(wrap->getExpr()->getType())))
            numbers.push_back(from);
    }

    // Whether the instruction is a number of so many bits, extended, so that without it nothing depends on the question.
    bool is_extended(llvm::Instruction& instruction, uint64_t bits) {
        const auto* const extended = llvm::dyn_cast<llvm::SCEVIntegralCastExpr>(evolution_.getSCEV(&instruction));
        return extended != nullptr && bits_of(instruction.getType()) <= 64 && !llvm::isa<llvm::PHINode>(instruction) &&
               bits_of(extended->getOperand()->getType()) == bits;
    }

    [[nodiscard]] uint64_t bits_of(llvm::Type* type) const { return evolution_.getTypeSizeInBits(type); }

    // Whether another question is one about more bits that LLVM takes for an answer to this one.
    bool is_left_out(const llvm::SCEVWrapPredicate& question) {
        return llvm::any_of(numbers_, [&](const auto& other) {
            return bits_of(other.first->getExpr()->getType()) > bits_of(question.getExpr()->getType()) &&
                   other.first->implies(&question, evolution_);
        });
    }

    // By a mask that LLVM does not know. It looks through `freeze` where the number cannot be poison.
    void hide(llvm::Instruction& number) {
        using namespace llvm::PatternMatch;
        const llvm::APInt* mask = nullptr;
        if (match(&number, m_And(m_Value(), m_APInt(mask)))) {
            number.setOperand(1, unknown(mask->getZExtValue(), *number.getType()));
            return;
        }
        llvm::IRBuilder<> at(number.getParent(), std::next(number.getIterator()));
        llvm::Value* const same = at.CreateAnd(&number, unknown(~uint64_t{0}, *number.getType()));
        number.replaceUsesWithIf(same, [&](const llvm::Use& use) { return use.getUser() != same; });
    }

    llvm::Value* unknown(uint64_t mask, llvm::Type& type) {
        llvm::BasicBlock* const predecessor = loop_.getLoopPredecessor();
        llvm::BasicBlock& entry = loop_.getHeader()->getParent()->getEntryBlock();
        llvm::IRBuilder<> before((predecessor != nullptr ? *predecessor : entry).getTerminator());
        llvm::Type* const word = before.getInt64Ty();
        auto* const same = llvm::InlineAsm::get(llvm::FunctionType::get(word, {word}, false), "", "=r,0", false);
        llvm::CallInst* const call = before.CreateCall(same, before.getInt64(mask));
        call->setDoesNotThrow();
        call->setDoesNotAccessMemory();
        call->addFnAttr(llvm::Attribute::WillReturn);
        return before.CreateTrunc(call, &type);
    }

    llvm::Loop& loop_;
    llvm::ScalarEvolution& evolution_;
    // Each question that a number does not wrap around, with the instructions that extend it.
    llvm::MapVector<const llvm::SCEVWrapPredicate*, llvm::SmallVector<llvm::Instruction*, 2>> numbers_;
};

// Whether the loop has instructions after which LLVM sees numbers of fewer bits.
bool has_narrow_numbers(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& instruction) {
            return instruction.getOpcode() == llvm::Instruction::And || llvm::isa<llvm::CastInst>(instruction);
        });
    });
}

struct NarrowWraps : llvm::PassInfoMixin<NarrowWraps> {
    explicit NarrowWraps(bool eliminates_loads) : eliminates_loads_(eliminates_loads) {}

    llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) const {
        bool changed = false;
        for (llvm::Loop* const loop : analyses.getResult<llvm::LoopAnalysis>(function).getLoopsInPreorder())
            if (loop->isInnermost() && (eliminates_loads_ || !workgroup::is_left_by_llvm(*loop)) &&
                has_narrow_numbers(*loop))
                changed |=
                    Questions(*loop, analyses.getResult<llvm::ScalarEvolutionAnalysis>(function)).hide_those_left_out();
        if (!changed)
            return llvm::PreservedAnalyses::all();
        llvm::PreservedAnalyses preserved;
        preserved.preserveSet<llvm::CFGAnalyses>();
        return preserved;
    }
    // LLVM runs this pass also where it leaves out optional passes (optnone).
    static bool isRequired() { return true; }

private:
    bool eliminates_loads_;
};

}  // namespace

void add_narrow_wraps_pass(llvm::PassBuilder& builder, bool eliminates_loads) {
    builder.registerVectorizerStartEPCallback(
        [eliminates_loads](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) {
            passes.addPass(NarrowWraps(eliminates_loads));
        });
}

}  // namespace polder::compiler
