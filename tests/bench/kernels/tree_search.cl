// A balanced search tree: each step loads a key, then the place of a child. Half of the keys are in its lowest level.
typedef struct {
    int key, left, right;
    float value;
} Node;
kernel void make_tree(global Node* nodes, int n) {
    const int i = get_global_id(0);
    if (i >= n)
        return;
    const int depth = 31 - clz(i + 1), place = i + 1 - (1 << depth);
    nodes[i].key = (2 * place + 1) * (1048576 >> (depth + 1));
    nodes[i].left = 2 * i + 1 < n ? 2 * i + 1 : -1;
    nodes[i].right = 2 * i + 2 < n ? 2 * i + 2 : -1;
    nodes[i].value = i;
}
kernel void tree_search(global const Node* nodes, global const int* keys, global float* out) {
    const int i = get_global_id(0), key = keys[i];
    int at = 0;
    float value = -1;
    while (at != -1) {
        value = nodes[at].value;
        if (nodes[at].key == key)
            break;
        at = key < nodes[at].key ? nodes[at].left : nodes[at].right;
    }
    out[i] = value;
}
