// The optimisation of a module whose kernel is the function of a whole work-group.
#pragma once

#include "module/module.h"
#include "pass_times.h"
#include "targets/host/workgroup/workgroup.h"

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>
#include <polder/result.h>

namespace polder::compiler {

// Fails where the code that is being made is not needed any more.
[[nodiscard]] Result<void> check_needed();

// `lanes`: which lanes the work-group function got. `times` gets the passes' times.
[[nodiscard]] Result<void> optimize(llvm::Module& module, llvm::TargetMachine& machine, const CodeOptions& options,
                                    const workgroup::LaneReport& lanes, PassTimes& times);

}  // namespace polder::compiler
