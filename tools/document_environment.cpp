// Writes the options table to the file named by the only argument (doc/environment.md).
#include <base/options.h>

#include <fstream>
#include <iostream>

int main(int argument_count, char** arguments) {
    if (argument_count != 2) {
        std::cerr << "usage: document-environment FILE\n";
        return 2;
    }
    std::ofstream file(arguments[1]);
    file << polder::options::table_as_markdown();
    return file.flush() ? 0 : 1;
}
