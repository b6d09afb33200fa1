// The reverse of a graph as a C++ user writes it: y = f(x, k), z = g(y, x), both seeded.

#include <stdexcept>
#include <variant>
#include <vector>

#include "check.hpp"
#include "eagle/diff.hpp"

using namespace eagle;

int main() {
    const int x = 0, k = 1, y = 2, z = 3;
    Description graph{4, {}};
    graph.nodes.push_back({"f", {{0, x}, {1, k}}, {{2, y}}, {{0, x}}, {{0, x}, {1, k}}});
    graph.nodes.push_back({"g", {{0, y}, {1, x}}, {{2, z}, {3, x}}, {{0, y}}, {{0, y}, {1, x}}});

    const diff::Transposed reverse = diff::transpose(graph, {{1, z}, {0, y}});
    CHECK(reverse.steps.size() == 4);
    const auto& g = std::get<diff::Vjp>(reverse.steps[0]);
    CHECK(g.node == 1 && g.cotangents == (std::vector<int>{0, diff::kNone}));
    const auto& join_y = std::get<diff::Join>(reverse.steps[1]);
    CHECK(join_y.sources == (std::vector<int>{1, g.outputs[0]}));
    const auto& f = std::get<diff::Vjp>(reverse.steps[2]);
    CHECK(f.node == 0 && f.cotangents == std::vector<int>{join_y.target});
    const auto& join_x = std::get<diff::Join>(reverse.steps[3]);
    CHECK(join_x.sources == (std::vector<int>{f.outputs[0], g.outputs[1]}));

    CHECK(reverse.gradients.size() == 2);
    CHECK(reverse.gradients[0].plane == x && reverse.gradients[0].buffer == join_x.target);
    CHECK(reverse.gradients[1].plane == k && reverse.gradients[1].buffer == f.outputs[1]);
    CHECK(reverse.copies.size() == 1 && reverse.copies[0].plane == x && reverse.copies[0].before_node == 1);
    CHECK(diff::copies(graph).size() == 1);
    CHECK(THROWS(std::invalid_argument, diff::transpose(graph, {{0, x}})));

    const float terms[] = {1e8F, 1.0F, 1.0F};
    CHECK(diff::treeOfBlocks(terms, 3) == 1e8F);
    CHECK(diff::orderedSum(terms, 0) == 0.0F);
    return failures();
}
