// Imitates another version's libclang-cpp that an application has loaded: it defines functions that Clang and LLVM call
// in every build, under their names, and ends the process when one of them is called.
#include <cstdio>
#include <cstdlib>

#define STAND_IN(name, symbol)                                                                                         \
    extern "C" [[gnu::visibility("default"), gnu::used]] void name() __asm__(symbol);                                  \
    void name() {                                                                                                      \
        std::fputs("the stand-in's " symbol " was called\n", stderr);                                                  \
        std::abort();                                                                                                  \
    }

STAND_IN(make_context, "_ZN4llvm11LLVMContextC1Ev")
STAND_IN(end_context, "_ZN4llvm11LLVMContextD1Ev")
STAND_IN(make_compiler, "_ZN5clang16CompilerInstanceC1ESt10shared_ptrINS_18CompilerInvocationEES1_INS_"
                        "22PCHContainerOperationsEES1_INS_11ModuleCacheEE")
STAND_IN(end_compiler, "_ZN5clang16CompilerInstanceD1Ev")
STAND_IN(make_module, "_ZN4llvm6ModuleC1ENS_9StringRefERNS_11LLVMContextE")
STAND_IN(end_module, "_ZN4llvm6ModuleD1Ev")
