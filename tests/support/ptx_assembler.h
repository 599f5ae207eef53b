// NVIDIA's assembler, if it is there, to accept or refuse PTX.
//
// It is POLDER_PTXAS, or `ptxas` in the search path or in a CUDA toolkit. Any thread.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::test {

// Empty when there is none.
inline const std::string& ptxas() {
    static const std::string path = [] {
        if (const char* const named = std::getenv("POLDER_PTXAS"))
            return std::string{named};
        std::string folders = std::getenv("PATH") ? std::getenv("PATH") : "";
        folders += ":/usr/local/cuda/bin";
        for (size_t begin = 0; begin < folders.size();) {
            const size_t end = std::min(folders.find(':', begin), folders.size());
            const std::string candidate = folders.substr(begin, end - begin) + "/ptxas";
            if (access(candidate.c_str(), X_OK) == 0)
                return candidate;
            begin = end + 1;
        }
        return std::string{};
    }();
    return path;
}

// Runs the assembler on a file; its output when it fails.
inline std::string assemble(const std::string& file, const std::string& processor) {
    // -O0: what is wrong is found without optimisation, which takes long.
    const std::string command = ptxas() + " -O0 -arch=" + processor + " -o /dev/null " + file + " 2>&1";
    std::string output;
    FILE* const pipe = popen(command.c_str(), "r");
    for (char line[512]; pipe && std::fgets(line, sizeof line, pipe);)
        output += line;
    const int status = pipe ? pclose(pipe) : -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "ptxas: " + output;
}

// What the assembler objects to; empty when it accepts `text`.
inline std::string assembler_errors(std::string_view text, const std::string& processor) {
    std::string name = (std::filesystem::temp_directory_path() / "polder-ptx-XXXXXX").string();
    const int file = mkstemp(name.data());
    if (file < 0)
        return "no temporary file";
    close(file);
    std::ofstream(name) << text;
    std::string errors = assemble(name, processor);
    // New assemblers know old processors no more. Code for an old processor is also code for a newer one.
    if (errors.find("option 'gpu-name'") != errors.npos)
        errors = assemble(name, processor < "sm_75" && processor.size() == 5 ? "sm_75" : processor);
    unlink(name.c_str());
    return errors;
}

}  // namespace polder::test
