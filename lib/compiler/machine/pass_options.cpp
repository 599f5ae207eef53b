#include "pass_options.h"

#include "long_block_scheduler.h"

#include <llvm/CodeGen/MachinePassRegistry.h>
#include <llvm/CodeGen/MachineScheduler.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>

namespace polder::compiler {
namespace {

template <class T, class Parser = llvm::cl::parser<T>>
void set_option(const char* name, T value) {
    auto& options = llvm::cl::getRegisteredOptions();
    if (const auto found = options.find(name); found != options.end())
        static_cast<llvm::cl::opt<T, false, Parser>*>(found->second)->setValue(value);
}

}  // namespace

void set_pass_options() {
    // The search for loops that compute a checksum follows all paths through the operands of a loop's values. For a loop with image reads in
    // lanes it did not end. Kernels do not need it: it looks for a loop of eight iterations over the bits of one value.
    llvm::DisableLIRP::HashRecognize = true;

    // LICM would change (y * n + t) + x, with int operands, to (y * n + x) + t without no-wrap flags. After that, the
    // vectorizer could not prove that neighbouring work-items access neighbouring elements.
    set_option<unsigned>("licm-max-num-int-reassociations", 0);

    // The scheduler compares each access with all others of its block that it has not passed yet, and each keeps a list of those that it
    // must follow. A kernel of 800 accesses took three quarters of its code generation for that (decision 317). The scheduler keeps the order between accesses
    // that are this far apart in any case.
    set_option<unsigned>("dag-maps-huge-region", 100);

    // Who makes a list of the code generator's passes decides whether loops are reduced in strength (object_emitter.h).
    set_option<bool>("disable-lsr", true);

    set_option<llvm::MachineSchedRegistry::ScheduleDAGCtor, llvm::RegisterPassParser<llvm::MachineSchedRegistry>>(
        "misched", schedule_long_blocks);
}

}  // namespace polder::compiler
