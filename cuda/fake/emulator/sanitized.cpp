// Every kernel for every scalar, on ragged sizes, in several orders of its threads, with operands of
// exactly their size on the heap: for a sanitizer (`../sanitized`). What is computed is checked elsewhere.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

extern "C" int emulator_launch(const char*, const unsigned*, const unsigned*, size_t, void**, unsigned,
                               char*, size_t);
extern "C" int emulator_has(const char*);

static std::mt19937 generator(1);
static int failures = 0, launches = 0;
// Whether kernels that are not there are left out.
static bool those_there = false;

template <class... A>
void launch(const std::string& name, unsigned x, unsigned y, size_t shared, unsigned seed, A... values) {
  if (those_there && !emulator_has(name.c_str())) return;
  launches++;
  void* arguments[] = {&values...};
  const unsigned blocks[3] = {name == "add_up" ? 1u : 2u, 1, 1}, threads[3] = {x, y, 1};
  char error[512];
  if (emulator_launch(name.c_str(), blocks, threads, shared, arguments, seed, error, sizeof error)) {
    printf("%s: %s\n", name.c_str(), error);
    failures++;
  }
}

constexpr long long BATCH = 3;

// Whether operands have zeros, equal numbers, and what is not finite or near the ends of the range; the
// first of a batch is zero then.
static bool odd = false;

template <class R> R number() {
  using Limits = std::numeric_limits<R>;
  const R usual = (R)(generator() / 2147483648.0 - 1);
  if (!odd) return usual;
  switch (generator() % 12) {
    case 0: case 1: case 2: return 0;
    case 3: return Limits::min() * usual;
    case 4: return Limits::max() * usual;
    case 5: return Limits::denorm_min();
    case 6: case 7: return generator() % 2 ? 1 : -1;
    case 8: return generator() % 8 ? usual : Limits::quiet_NaN();
    case 9: return generator() % 8 ? usual : Limits::infinity();
    default: return usual;
  }
}

template <class R> struct Operand : std::vector<R> {
  explicit Operand(size_t count) : std::vector<R>(count) {
    for (R& x : *this) x = number<R>();
    if (odd) std::fill_n(this->begin(), count / BATCH, R(0));
  }
};

template <class R> void factor(const std::string& type, int parts, int m, int n, unsigned seed) {
  const int k = m < n ? m : n;
  const size_t element = sizeof(R) * parts, shared = (size_t)(m | 1) * n * element;
  const size_t v = (size_t)m * k * element;
  Operand<R> lu(BATCH * m * n * parts), qr(BATCH * m * n * parts), tau(BATCH * k * parts);
  Operand<R> c(BATCH * m * 3 * parts);
  std::vector<int32_t> ipiv(BATCH * k), info(BATCH);
  launch("getrf" + type, 64, 1, shared, seed, lu.data(), ipiv.data(), info.data(), BATCH, m, n);
  launch("geqrf" + type, 64, 1, shared, seed, qr.data(), tau.data(), BATCH, m, n);
  for (int adjoint : {1, 0}) {
    launch("ormqr" + type, 64, 1, v, seed, qr.data(), tau.data(), c.data(), BATCH, m, 3, n, k, 1,
           adjoint);
    launch("ormqr" + type, 64, 1, v, seed, qr.data(), tau.data(), c.data(), BATCH, 3, m, n, k, 0,
           adjoint);
  }
  launch("orgqr" + type, 64, 1, v, seed, qr.data(), tau.data(), BATCH, m, n, k);
}

// As the kernels have them.
struct PivotedCall {
  void* a;
  int32_t* jpvt;
  void *tau, *g, *products, *norms;
  int32_t* fixed;
  long long batch;
  int m, n, first, column;
};
struct LuCall {
  const void *a, *b;
  void* x;
  int32_t *pivots, *permutation;
  void *sign, *logabs;
  long long batch, nrhs;
  int m, n, task, op, columns, pieces;
};
struct CholeskyCall {
  const void *a, *b;
  void *x, *factor, *logdet;
  long long batch, nrhs;
  int n, task, upper, mean, columns, pieces;
};
struct QrCall {
  const void* a;
  void *q, *r;
  long long batch;
  int m, n, c;
};
struct EighCall {
  const void* a;
  void *v, *w;
  long long batch;
  int n, start, count, group, upper, mean, bytes;
};
struct SchurCall {
  const void* a;
  void *t, *z;
  long long batch;
  int n, task;
};
struct EigCall {
  const void* a;
  void *w, *v;
  long long batch;
  int n;
};
struct TriangularCall {
  const void *a, *b;
  void* x;
  long long batch, count, down, across;
  int n, turned, conjugated, lower, unit, columns, pieces;
};

// The kernel for matrices of an order, by the names of those that are there.
static std::string by_order(const std::string& family, int order, const std::string& type) {
  for (const char* largest : {"_4", "_8", "_16", "_32"})
    if (order <= std::stoi(largest + 1) && emulator_has((family + largest + type).c_str()))
      return family + largest + type;
  return family + "_block" + type;
}

template <class R> void rows(const std::string& type, int parts, int m, int n, unsigned seed) {
  const int k = m < n ? m : n, most = m > n ? m : n, columns = 2;
  // Enough for a warp's matrices, in each of two.
  const size_t elements = most > 32 ? (size_t)(m | 1) * n + columns * n : (size_t)64 * ((m * (n | 1)) | 1);
  const size_t shared = elements * parts * sizeof(R) + m * sizeof(int32_t);
  Operand<R> a(BATCH * m * n * parts), lu(BATCH * m * n * parts), sign(BATCH * parts), logabs(BATCH);
  std::vector<int32_t> pivots(BATCH * k), permutation(BATCH * m);
  LuCall call = {a.data(), nullptr, lu.data(), pivots.data(), permutation.data(), sign.data(),
                 logabs.data(), BATCH, 0, m, n, 0, 0, columns, 1};
  const std::string name = by_order("lu", most, type);
  launch(name, 64, 1, shared, seed, call);
  for (int c : {k, m})
    for (const char* kernel : {"qr_warp", "qr_block"}) {
      Operand<R> q(BATCH * m * c * parts), r(BATCH * c * n * parts);
      const size_t bytes = ((size_t)(m | 1) * (n > c ? n : c) + k) * parts * sizeof(R);
      QrCall whole = {a.data(), q.data(), r.data(), BATCH, m, n, c}, alone = whole;
      alone.q = nullptr;
      for (QrCall qr : {whole, alone}) launch(kernel + type, 64, 1, 2 * bytes, seed, qr);
    }
  if (m != n) return;
  call.task = 1;
  launch(name, 64, 1, shared, seed, call);
  for (int nrhs : {1, 5})
    for (int pieces : {1, 2}) {
      Operand<R> b(BATCH * n * nrhs * parts), x(BATCH * n * nrhs * parts), inverse(BATCH * n * n * parts);
      call.b = b.data(), call.x = x.data(), call.nrhs = nrhs, call.pieces = pieces;
      call.task = 2;
      launch(name, 64, 1, shared, seed, call);
      call.x = inverse.data(), call.task = 3;
      launch(name, 64, 1, shared, seed, call);
      call.x = x.data(), call.task = 4;
      if (odd) permutation[0] = n, permutation[n - 1] = n > 1 ? -1 : n;
      for (call.op = 0; call.op < 3; call.op++) launch(name, 64, 1, shared, seed, call);
      call.op = 0;
      Operand<R> definite(BATCH * n * n * parts), factor(BATCH * n * n * parts), logdet(BATCH);
      for (long long i = 0; i < BATCH * n && !odd; i++)
        definite[(i / n * n * n + i % n * (n + 1)) * parts] = 2 * n;
      CholeskyCall other = {definite.data(), b.data(), x.data(), factor.data(), logdet.data(), BATCH,
                            nrhs, n, 0, 0, 0, columns, pieces};
      for (int which = 0; which < 12; which++) {
        other.task = which % 4, other.upper = which / 4 % 2, other.mean = which / 4 == 2;
        if (other.task == 0) other.pieces = 1;
        launch(by_order("cholesky", n, type), 64, 1, shared, seed, other);
        other.pieces = pieces;
      }
      for (int which = 0; which < 32; which++) {
        const bool left = which % 2;
        TriangularCall system = {a.data(), b.data(), x.data(), BATCH, nrhs, left ? nrhs : 1, left ? 1 : n, n,
                                 which >> 1 & 1, which >> 2 & 1, which >> 3 & 1, which >> 4, columns, pieces};
        launch(by_order("triangular", n, type), 64, 1, shared, seed, system);
      }
    }
}

template <class R> void eigh(const std::string& type, int parts, int n, unsigned seed) {
  const int pairs = (n + 1) / 2, vectors = (n | 1) * n;
  for (int which = seed % 2; which < 8; which += 2) {
    const bool wanted = which & 1, in_place = which == 1;
    Operand<R> a(BATCH * n * n * parts), v(BATCH * n * n * parts), w(BATCH * n);
    const int elements = pairs * (2 * pairs + 1) + pairs + wanted * vectors;
    const int used = (elements * parts + pairs) * sizeof(R) + (2 * pairs + 2 * n) * sizeof(int32_t);
    const int start = which == 3 ? n / 2 : 0, count = which == 5 ? (n + 1) / 2 : n - start;
    const int bytes = ((used + 15) / 16 | 1) * 16;
    void* to = wanted ? in_place ? a.data() : v.data() : nullptr;
    EighCall call = {a.data(), to, w.data(), BATCH, n, start, count, 0, which >> 1 & 1, which >> 2, bytes};
    for (call.group = 4; call.group <= 32; call.group *= 2)
      if (n <= call.group) launch("eigh_warp" + type, 64, 1, 64 / call.group * bytes, seed, call);
    call.group = 64;
    launch("eigh_block" + type, 64, 1, bytes, seed, call);
  }
  Operand<R> a(BATCH * n * n * parts), s(BATCH * n * n * parts);
  launch("symmetrize" + type, 64, 1, 0, seed, a.data(), s.data(), BATCH, n);
  for (int lower : {0, 1}) {
    Operand<R> reflectors(BATCH * n * n * parts), d(BATCH * n), e(BATCH * (n - 1));
    Operand<R> tau(BATCH * (n - 1) * parts);
    std::vector<int32_t> info(BATCH);
    const size_t shared = (size_t)((n | 1) + 1) * n * parts * sizeof(R);
    launch("sytrd" + type, 64, 1, shared, seed, reflectors.data(), d.data(), e.data(), tau.data(), info.data(),
           BATCH, n, lower);
  }
  for (int k : {1, 20})
    for (int transpose : {0, 1})
      for (R beta : {0, 2}) {
        Operand<R> factor(BATCH * n * k * parts), c(BATCH * n * n * parts);
        std::vector<R> alpha(parts, R(1)), of_c(parts, beta);
        launch("syrk" + type, 256, 1, 0, seed, factor.data(), c.data(), alpha.data(), of_c.data(), BATCH, n, k,
               transpose);
      }
}

// Without the product after a panel, which is cuBLAS's: what is behind one is another matrix.
template <class R> void pivoted(const std::string& type, int parts, int m, int n, unsigned seed) {
  constexpr int PANEL = 32;
  const int k = m < n ? m : n;
  const size_t shared = (size_t)((m | 1) + 2) * n * parts * sizeof(R);
  for (int every : {1, 3, 100}) {
    Operand<R> a(BATCH * m * n * parts), tau(BATCH * k * parts);
    std::vector<int32_t> jpvt(BATCH * n), fixed(BATCH);
    for (long long i = 0; i < BATCH * n; i++) jpvt[i] = every < 100 && i % n % every == every - 1;
    std::vector<R> b = a;
    std::vector<int32_t> numbers = jpvt;
    launch("geqp3_block" + type, 64, 1, shared, seed, a.data(), jpvt.data(), tau.data(), BATCH, m, n);
    std::vector<R> g(BATCH * n * PANEL * parts), products(BATCH * PANEL * parts), norms(BATCH * 2 * n);
    PivotedCall call = {b.data(), numbers.data(), tau.data(), g.data(), products.data(), norms.data(),
                        fixed.data(), BATCH, m, n, 0, 0};
    for (const char* step : {"geqp3_start", "geqp3_norms"}) launch(step + type, 64, 1, 0, seed, call);
    for (; call.column < k; call.column++) {
      call.first = call.column / PANEL * PANEL;
      for (const char* step : {"geqp3_pivot", "geqp3_columns"}) launch(step + type, 64, 1, 0, seed, call);
    }
  }
}

template <class R> void svd(const std::string& type, int parts, int m, int n, unsigned seed) {
  const int rows = m > n ? m : n, k = m > n ? n : m, numbers = rows > 32 ? rows : 32;
  for (int vectors : {0, 1})
    for (int adjoint : {0, 1})
      for (int u_columns : {k, m}) {
        const int v_columns = u_columns == m ? n : k;
        const size_t elements = (rows | 1) * k + vectors * ((k | 1) * k + 2 * rows);
        const size_t shared = elements * parts * sizeof(R) + 2 * numbers * sizeof(R) + 2 * k * sizeof(int32_t);
        Operand<R> a(BATCH * m * n * parts), s(BATCH * k), u(BATCH * m * u_columns * parts);
        Operand<R> v(BATCH * n * v_columns * parts);
        std::vector<int32_t> info(BATCH);
        // By rows without info.
        for (int turned : {0, vectors})
          launch("gesvdj" + type, 64, 1, shared, seed, a.data(), s.data(), u.data(), v.data(),
                 turned ? nullptr : info.data(), BATCH, m, n, u_columns, v_columns, vectors, adjoint,
                 turned, -4, rows > 16 ? 32 : 8);
      }
}

template <class R> void schur(const std::string& type, int parts, int n, unsigned seed) {
  Operand<R> a(BATCH * n * n * parts), t(BATCH * n * n * parts), z(BATCH * n * n * parts);
  // A cyclic shift takes exceptional ones, two small elements in a row begin a sweep late,
  // and vectors of a nilpotent matrix are made smaller on the way.
  const R root = std::sqrt(std::numeric_limits<R>::epsilon()) / 4;
  for (int e = 0; e < n * n && !odd && n > 2; e++) {
    const int i = e / n, j = e % n;
    for (int part = 0; part < parts; part++) {
      a[e * parts + part] = part == 0 && i == (j + 1) % n;
      if (seed == 0) a[(2 * n * n + e) * parts + part] = part == 0 && j == i + 1;
      if (i > j) a[(n * n + e) * parts + part] = i == j + 1 && part == 0 ? (i + 2 < n ? root : 1) : 0;
    }
  }
  // Equal eigenvalues, and lengths that are far apart.
  const R twins[2][BATCH][4] = {{{1, 1, R(1e-20), 1}, {2, 1, -1, 0}, {2, -1, 1, 0}},
                                {{0, 1, R(std::ldexp(1.0, -300)), 0}, {1, 0, 1, 1}, {0, 1, -1, 0}}};
  for (int e = 0; e < BATCH * 4 && n == 2 && seed < 2; e++)
    for (int part = 0; part < parts; part++) a[e * parts + part] = part ? 0 : twins[seed][e / 4][e % 4];
  const size_t shared = 2 * (size_t)(2 * (n | 1) + 1) * n * parts * sizeof(R);
  for (int task : {0, 1}) {
    SchurCall call = {a.data(), t.data(), z.data(), BATCH, n, task};
    launch("schur" + type, 64, 1, shared, seed, call);
  }
  Operand<R> w(BATCH * n * 2), v(BATCH * n * n * 2);
  for (void* vectors : {(void*)v.data(), (void*)nullptr}) {
    EigCall call = {a.data(), w.data(), vectors, BATCH, n};
    const size_t elements = (n | 1) * n * (parts + (vectors ? parts + 2 : 0)) + n;
    launch("eig" + type, 64, 1, 2 * ((elements * sizeof(R) + 15) / 16 * 16), seed, call);
  }
}

// Rows that are empty, long, and not of the matrix; offsets past the entries.
template <class R>
void sparse(const std::string& type, int parts, int rows, int columns, int n, unsigned seed) {
  std::vector<int32_t> row, column, indptr = {0};
  for (int i = 0; i < rows; i++) {
    for (unsigned e = generator() % 5 * (i % 3 == 0 ? 9 : 1); e > 0; e--) {
      row.push_back(generator() % 11 == 0 || (odd && i < rows / 2) ? rows : i);
      column.push_back(generator() % 11 == 0 ? -1 : (int)(generator() % columns));
    }
    indptr.push_back((int)row.size());
  }
  indptr.back() += 3;
  const int nnz = (int)row.size(), most = rows > columns ? rows : columns;
  Operand<R> data((size_t)nnz * parts), x((size_t)most * n * parts);
  Operand<R> dense((size_t)rows * columns * parts);
  for (auto [m, k, to, from] : {std::tuple(rows, columns, &row, &column),
                                std::tuple(columns, rows, &column, &row)}) {
    Operand<R> y((size_t)m * n * parts);
    const int32_t *to_at = to->data(), *from_at = from->data();
    if (n == 1)
      launch("coo_vector" + type, 64, 1, 0, seed, data.data(), to_at, from_at, x.data(), y.data(), m,
             k, nnz);
    launch("coo_matrix" + type, 64, 1, 0, seed, data.data(), to_at, from_at, x.data(), y.data(), m, k,
           n, nnz);
  }
  Operand<R> y((size_t)most * n * parts);
  for (int group : {1, 4, 32})
    if (n == 1)
      launch("csr_vector" + type, 64, 1, 0, seed, data.data(), column.data(), indptr.data(), x.data(),
             y.data(), rows, columns, nnz, group);
  for (const char* name : {"csr_matrix", "csr_transposed"})
    launch(name + type, 64, 1, 0, seed, data.data(), column.data(), indptr.data(), x.data(), y.data(),
           rows, columns, n, nnz);
  launch("csr_dense" + type, 64, 1, 0, seed, data.data(), column.data(), indptr.data(), dense.data(),
         rows, columns, nnz);
  launch("coo_dense" + type, 64, 1, 0, seed, data.data(), row.data(), column.data(), dense.data(),
         rows, columns, nnz);
  for (size_t i = 0; i < dense.size(); i++)
    if (i / parts % 3) dense[i] = 0;
  for (int places : {0, nnz, rows * columns}) {
    Operand<R> values((size_t)places * parts);
    std::vector<int32_t> offsets(rows + 1), row_of(places), column_of(places);
    launch("count_entries" + type, 64, 1, 0, seed, dense.data(), offsets.data(), rows, columns);
    const unsigned adders = rows < 64 ? rows : 64;
    launch("add_up", adders, 1, 8 * adders, seed, offsets.data(), rows, places);
    for (int32_t* rows_at : {row_of.data(), (int32_t*)nullptr})
      launch("take_entries" + type, 64, 1, 0, seed, dense.data(), offsets.data(), values.data(),
             rows_at, column_of.data(), rows, columns, places);
  }
}

template <class R> void all(const std::string& type, int parts) {
  for (unsigned seed = 0; seed < 4; seed++) {
    odd = seed == 3;
    for (auto [m, n] : {std::pair(1, 1), std::pair(4, 4), std::pair(3, 5), std::pair(7, 7), std::pair(16, 16),
                        std::pair(21, 21), std::pair(40, 40), std::pair(12, 35), std::pair(37, 6)})
      rows<R>(type, parts, m, n, seed);
    for (int n : {1, 2, 5, 18}) eigh<R>(type, parts, n, seed);
    for (int n : {1, 2, 5, 31, 32, 33, 40, 65}) {
      Operand<R> r(BATCH * n * n * parts), w(BATCH * n * parts);
      launch("cholesky_update" + type, n <= 32 ? 32 : 64, 1, 0, seed, r.data(), w.data(), BATCH, n);
      factor<R>(type, parts, n, n, seed);
      factor<R>(type, parts, n + 7, n, seed);
      if (n == 2) factor<R>(type, parts, 130, n, seed);
      if (n <= 5 || n == 33) schur<R>(type, parts, n, seed);
      if (n <= 5)
        for (auto [rows, columns] : {std::pair(n, n), std::pair(n + 13, n), std::pair(n, n + 13)})
          svd<R>(type, parts, rows, columns, seed);
      if (n <= 5 || n == 33)
        for (auto [rows, columns] : {std::pair(n, n), std::pair(n + 40, n), std::pair(n, n + 3)})
          pivoted<R>(type, parts, rows, columns, seed);
      // More columns than threads.
      if (n == 2) pivoted<R>(type, parts, n, 70, seed);
      for (int lower : {0, 1}) {
        Operand<R> a(BATCH * n * n * parts);
        for (long long i = 0; i < BATCH * n && !odd; i++)
          a[(i / n * n * n + i % n * (n + 1)) * parts] = 2 * n;
        std::vector<int32_t> info(BATCH);
        const size_t shared = (size_t)(n | 1) * n * parts * sizeof(R);
        launch("potrf" + type, 64, 1, shared, seed, a.data(), info.data(), BATCH, n, lower);
      }
      for (auto [nrhs, width] : {std::pair(1LL, 1), std::pair(3LL, 4), std::pair(40LL, 32)}) {
        Operand<R> dl(BATCH * n * parts), d(BATCH * n * parts), du(BATCH * n * parts);
        Operand<R> b(BATCH * n * nrhs * parts), x(BATCH * n * nrhs * parts), u(3 * BATCH * n * parts);
        for (const char* name : {"tridiagonal_solve", "tridiagonal_solve_rows", "tridiagonal_solve_perturbed"})
          launch(name + type, 64, 1, 0, seed, dl.data(), d.data(), du.data(), b.data(), x.data(),
                 u.data(), BATCH, n, nrhs, width);
      }
      for (int columns : {1, 3}) sparse<R>(type, parts, n, 2 * n, columns, seed);
    }
  }
}

static void permutations(int n, int kind, unsigned seed) {
  std::vector<int32_t> pivots(BATCH * n), permutation(BATCH * n);
  for (long long i = 0; i < BATCH * n; i++) {
    const int j = i % n;
    pivots[i] = kind == 0 ? j + generator() % (n - j) : (int)(generator() % (n + 4)) - 2;
  }
  const size_t bytes = (size_t)n * sizeof(int32_t);
  launch("lu_pivots_warp", 32, 2, 2 * bytes, seed, pivots.data(), permutation.data(), BATCH, n, n);
  for (int shared : {1, 0})
    launch("lu_pivots_block", 64, 1, shared * bytes, seed, pivots.data(), permutation.data(), BATCH, n,
           n, shared);
  std::vector<long long> wide(BATCH * n, 7);
  launch("narrow", 64, 1, 0, seed, wide.data(), permutation.data(), BATCH * n);
}

int main(int count, char**) {
  those_there = count > 1;
  all<float>("_f32", 1);
  all<double>("_f64", 1);
  all<float>("_c64", 2);
  all<double>("_c128", 2);
  for (unsigned seed = 0; seed < 3; seed++)
    for (int n : {1, 7, 32, 33, 100, 300})
      for (int kind : {0, 1}) permutations(n, kind, seed);
  const bool clean = launches > 0 && failures == 0;
  printf("%s\n", clean ? "clean" : "failed");
  return clean ? 0 : 1;
}
