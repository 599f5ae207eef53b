#include "short_loops.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler {
namespace {

constexpr unsigned line = 64;
// A longer loop is in several lines wherever it begins.
constexpr unsigned short_max = 24;

bool is_short(const llvm::Loop& loop) {
    unsigned count = 0;
    for (const llvm::BasicBlock* const block : loop.blocks())
        for (const llvm::Instruction& instruction : block->instructionsWithoutDebug())
            if (!llvm::isa<llvm::PHINode>(instruction) && ++count > short_max)
                return false;
    return true;
}

}  // namespace

unsigned align_short_loops(llvm::Function& function) {
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    unsigned aligned = 0;
    for (llvm::Loop* const loop : loops.getLoopsInPreorder())
        if (loop->isInnermost() && is_short(*loop)) {
            llvm::addStringMetadataToLoop(loop, "llvm.loop.align", line);
            ++aligned;
        }
    return aligned;
}

}  // namespace polder::compiler
