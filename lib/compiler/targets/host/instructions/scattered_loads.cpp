#include "scattered_loads.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#include <memory>
#include <string>

namespace polder::compiler {
namespace {

constexpr const char* features_attribute = "target-features";

bool joins_statements(llvm::StringRef pass) { return pass == "SLPVectorizerPass"; }

// The function that a pass runs on.
llvm::Function* function_of(const llvm::Any& ir) {
    const auto* const function = llvm::any_cast<const llvm::Function*>(&ir);
    return function == nullptr ? nullptr : const_cast<llvm::Function*>(*function);
}

// The vectorizer asks the target of the function, which LLVM keeps like any analysis and never makes anew by itself.
class WithoutGathers {
public:
    WithoutGathers(llvm::FunctionAnalysisManager& analyses, const llvm::TargetMachine& machine)
        : analyses_(analyses), features_of_machine_(machine.getTargetFeatureString()) {}

    void begin(llvm::Function& function) {
        features_ = function.getFnAttribute(features_attribute);
        const std::string features = features_.isValid() ? features_.getValueAsString().str() : features_of_machine_;
        function.addFnAttr(features_attribute, features + (features.empty() ? "" : ",") + "+prefer-no-gather");
        analyses_.clear(function, function.getName());
    }

    void end(llvm::Function& function) {
        function.removeFnAttr(features_attribute);
        if (features_.isValid())
            function.addFnAttr(features_);
        analyses_.clear(function, function.getName());
    }

private:
    llvm::FunctionAnalysisManager& analyses_;
    const std::string features_of_machine_;
    llvm::Attribute features_;  // of the function that the pass runs on
};

}  // namespace

// LLVM makes gathers for processors without AVX-512 only if they have `fast-gather`.
bool has_slow_gathers(const llvm::TargetMachine& machine) {
    const auto has = [&](const char* features) { return machine.getMCSubtargetInfo()->checkFeatures(features); };
    return machine.getTargetTriple().isX86() && has("+avx512f") && !has("+fast-gather");
}

void keep_scattered_loads(llvm::PassInstrumentationCallbacks& callbacks, llvm::FunctionAnalysisManager& analyses,
                          const llvm::TargetMachine& machine) {
    if (!has_slow_gathers(machine))
        return;
    const auto without_gathers = std::make_shared<WithoutGathers>(analyses, machine);
    callbacks.registerBeforeNonSkippedPassCallback([without_gathers](llvm::StringRef pass, const llvm::Any& ir) {
        if (llvm::Function* const function = joins_statements(pass) ? function_of(ir) : nullptr)
            without_gathers->begin(*function);
    });
    callbacks.registerAfterPassCallback(
        [without_gathers](llvm::StringRef pass, const llvm::Any& ir, const llvm::PreservedAnalyses&) {
            if (llvm::Function* const function = joins_statements(pass) ? function_of(ir) : nullptr)
                without_gathers->end(*function);
        });
}

}  // namespace polder::compiler
