// Conjugate gradients of ViennaCL on a sparse matrix (the five-point Laplacian of a square), on OpenCL, checked
// against a solution that is known because the right-hand side was made from it on the host.
#define VIENNACL_WITH_OPENCL
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>
#include <viennacl/compressed_matrix.hpp>
#include <viennacl/linalg/cg.hpp>
#include <viennacl/vector.hpp>

namespace {

constexpr unsigned side = 96;
constexpr unsigned unknowns = side * side;
using Row = std::map<unsigned, double>;

std::vector<Row> laplacian() {
    std::vector<Row> rows(unknowns);
    for (unsigned y = 0; y < side; ++y)
        for (unsigned x = 0; x < side; ++x) {
            Row& row = rows[y * side + x];
            row[y * side + x] = 4.1;
            if (x > 0)
                row[y * side + x - 1] = -1;
            if (x + 1 < side)
                row[y * side + x + 1] = -1;
            if (y > 0)
                row[(y - 1) * side + x] = -1;
            if (y + 1 < side)
                row[(y + 1) * side + x] = -1;
        }
    return rows;
}

std::vector<double> multiply(const std::vector<Row>& matrix, const std::vector<double>& vector) {
    std::vector<double> product(matrix.size());
    for (size_t i = 0; i < matrix.size(); ++i)
        for (const auto& [column, value] : matrix[i])
            product[i] += value * vector[column];
    return product;
}

} // namespace

int main() {
    const std::vector<Row> matrix = laplacian();
    std::vector<double> solution(unknowns);
    for (unsigned i = 0; i < unknowns; ++i)
        solution[i] = std::sin(0.37 * i) + 0.001 * i;
    const std::vector<double> right_side = multiply(matrix, solution);

    std::printf("device: %s\n", viennacl::ocl::current_device().name().c_str());
    viennacl::compressed_matrix<double> device_matrix(unknowns, unknowns);
    viennacl::copy(matrix, device_matrix);
    viennacl::vector<double> device_right_side(unknowns);
    viennacl::copy(right_side, device_right_side);

    const viennacl::linalg::cg_tag tag(1e-12, 1000);
    const viennacl::vector<double> device_solution = viennacl::linalg::solve(device_matrix, device_right_side, tag);
    std::vector<double> computed(unknowns);
    viennacl::copy(device_solution, computed);

    double error_max = 0;
    for (unsigned i = 0; i < unknowns; ++i)
        error_max = std::fmax(error_max, std::fabs(computed[i] - solution[i]));
    std::printf("%u iterations, largest error %g\n", tag.iters(), error_max);
    const bool converged = tag.iters() > 1 && tag.iters() < tag.max_iterations();
    return converged && error_max < 1e-8 ? 0 : 1;
}
