"""CUDA C of our own products: sums in double precision, each row read once.

Macros say what is compiled: ``T`` the type of the data, ``V`` entries of a load, ``W`` columns
multiplied, and more for single kernels. Sums over rows are left as a few partial ones, which
``add_up`` adds in a fixed order: results do not depend on which multiprocessor was first. Sparse
products down the columns are the exception: they add by atomic operations.
"""

from __future__ import annotations

__all__ = ["COMMON", "CROSS", "GRAM", "NEXT", "SPARSE"]

#: Adding up, and products of dense rows with a vector.
COMMON = r"""
typedef long long big;
struct __align__(sizeof(T) * V) pack { T at[V]; };

// out[j] = sum over c of part[c][j], 32 columns a block; its warps share the parts.
extern "C" __global__ void add_up(const double* part, int parts, big length, double* out) {
    __shared__ double sums[8][33];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    big j = (big)blockIdx.x * 32 + lane;
    double sum[2] = {0.0, 0.0};
    if (j < length) {
        int c = warp;
        #pragma unroll 4
        for (; c + 8 < parts; c += 16)
            for (int k = 0; k < 2; k++) sum[k] += part[(c + 8 * k) * length + j];
        if (c < parts) sum[0] += part[c * length + j];
    }
    sums[warp][lane] = sum[0] + sum[1];
    __syncthreads();
    if (warp || j >= length) return;
    double total = 0.0;
    for (int k = 0; k < 8; k++) total += sums[k][lane];
    out[j] = total;
}

// out[i][w] = X[i] v[w], a warp for each row.
extern "C" __global__ void apply(
    const T* X, big m, int n, big ld, const double* v, double* out) {
    int lane = threadIdx.x & 31;
    big warp = ((big)blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    big warps = ((big)gridDim.x * blockDim.x) >> 5;
    int packs = n / V;
    for (big i = warp; i < m; i += warps) {
        const pack* row = (const pack*)(X + i * ld);
        double sum[W + 1];
        for (int w = 0; w < W; w++) sum[w] = 0.0;
        #pragma unroll 4
        for (int k = lane; k < packs; k += 32) {
            pack x = row[k];
            for (int w = 0; w < W; w++)
                for (int e = 0; e < V; e++) sum[w] += (double)x.at[e] * v[(big)w * n + k * V + e];
        }
        for (int w = 0; w < W; w++) {
            for (int d = 16; d; d >>= 1) sum[w] += __shfl_xor_sync(~0u, sum[w], d);
            if (lane == 0) out[i * W + w] = sum[w];
        }
    }
}
"""

#: Products down the columns, with or without squared lengths, for rows in any number of parts.
CROSS = r"""
// part[c][w] = sum over rows of u[w][i] X[i], and with SQUARES one line more: of weight[i] X[i]^2.
// A thread has P packs of columns, so that what it reads of u serves several.
extern "C" __global__ void cross(
    const T* X, big m, int n, big ld, const double* u, const double* weight, double* part) {
    int packs = n / V, pack_at = blockIdx.x * P * blockDim.x + threadIdx.x;
    big parts = (big)gridDim.y * blockDim.y, own = (big)blockIdx.y * blockDim.y + threadIdx.y;
    if (pack_at >= packs) return;
    big each = (m + parts - 1) / parts, first = own * each;
    big stop = first + each < m ? first + each : m;
    double sum[P][W + SQUARES][V];
    for (int p = 0; p < P; p++)
        for (int w = 0; w < W + SQUARES; w++)
            for (int e = 0; e < V; e++) sum[p][w][e] = 0.0;
    #pragma unroll UNROLL
    for (big i = first; i < stop; i++) {
        const pack* row = (const pack*)(X + i * ld) + pack_at;
        pack x[P];
        #pragma unroll
        for (int p = 0; p < P; p++)
            // Beyond the end the first pack stands in, and what comes of it is left out.
            x[p] = row[pack_at + p * blockDim.x < packs ? p * blockDim.x : 0];
        double s = 1.0, own_u[W + 1];
        if (SQUARES && weight) s = weight[i];
        for (int w = 0; w < W; w++) own_u[w] = u[(big)w * m + i];
        #pragma unroll
        for (int p = 0; p < P; p++)
            for (int e = 0; e < V; e++) {
                double a = (double)x[p].at[e];
                for (int w = 0; w < W; w++) sum[p][w][e] += own_u[w] * a;
                if (SQUARES) sum[p][W + SQUARES - 1][e] += s * a * a;
            }
    }
    for (int p = 0; p < P; p++)
        if (pack_at + p * blockDim.x < packs)
            for (int w = 0; w < W + SQUARES; w++)
                for (int e = 0; e < V; e++)
                    part[(own * (W + SQUARES) + w) * n + ((big)pack_at + p * blockDim.x) * V + e] =
                        sum[p][w][e];
}
"""

#: ``X' M X v``, and what ``M`` leaves along its basis behind it: each row is brought to shared
#: memory once, and used twice there. A cluster of C multiprocessors shares a row; R rows are a
#: group, multiplied between two barriers.
GRAM = r"""
typedef unsigned int word;
__device__ __forceinline__ word shared_address(const void* p) {
    return (word)__cvta_generic_to_shared(p);
}
__device__ __forceinline__ void bring(void* to, const void* from, word bytes, word barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
__device__ __forceinline__ void await(word barrier, word parity) {
    word done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
            " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}
#define WARPS (THREADS / 32)
struct Yes { static constexpr bool yes = true; };
struct No { static constexpr bool yes = false; };

extern "C" __global__ void __cluster_dims__(C, 1, 1) __launch_bounds__(THREADS, 1) gram(
    const T* X, big m, int n, big ld, const double* v, const double* factor,
    const double* basis, int f, const double* along, double* part) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ __align__(8) unsigned long long full[STAGES];
    __shared__ double sums[2][R * W][WARPS];
    __shared__ double parts[2][C][R * W];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int rank = blockIdx.x % C, cluster = blockIdx.x / C, clusters = gridDim.x / C;
    const int from = rank * SEGMENT;
    const int length = n - from < SEGMENT ? (n - from > 0 ? n - from : 0) : SEGMENT;
    const word bytes = length * (word)sizeof(T);
    T* rows = (T*)memory;
    double mine[W][K][V], out[W][K][V], rest[W];
    for (int w = 0; w < W; w++) {
        rest[w] = 0.0;
        for (int k = 0; k < K; k++) {
            int at = (k * THREADS + threadIdx.x) * V;
            for (int e = 0; e < V; e++) {
                mine[w][k][e] = at < length ? v[(big)w * n + from + at + e] : 0.0;
                out[w][k][e] = 0.0;
            }
        }
    }
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(full + s)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    const big groups = (m + R - 1) / R;
    auto load = [&](big group, int stage) {
        if (group >= groups || !bytes) return;
        int count = m - group * R < R ? (int)(m - group * R) : R;
        word barrier = shared_address(full + stage);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
            :: "r"(barrier), "r"(bytes * count) : "memory");
        for (int r = 0; r < count; r++)
            bring(rows + ((size_t)stage * R + r) * SEGMENT, X + (group * R + r) * ld + from, bytes,
                  barrier);
    };
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++) load(cluster + (big)s * clusters, s);
    auto rows_of = [&](word at) {
        const big left = m - (cluster + (big)at * clusters) * R;
        return R == 1 || left >= R ? R : (int)left;
    };
    auto held = [&](word at) { return rows + (size_t)(at % STAGES) * R * SEGMENT; };
    // Sums of inner products over the blocks of a cluster, which may go on in between.
    auto send = [&](word at) {
        if (threadIdx.x < R * W) {
            double sum = 0.0;
            for (int k = 0; k < WARPS; k++) sum += sums[at & 1][threadIdx.x][k];
            for (int other = 0; other < C; other++) {
                word to;
                asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to)
                    : "r"(shared_address(&parts[at & 1][rank][threadIdx.x])), "r"(other));
                asm volatile("st.shared::cluster.f64 [%0], %1;" :: "r"(to), "d"(sum) : "memory");
            }
        }
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    };
    // What a row has met, and what M makes of it.
    auto met = [&](word at, int r, double (&t)[W]) {
        const big i = (cluster + (big)at * clusters) * R + r;
        const double scale = factor ? factor[i] : 1.0;
        for (int w = 0; w < W; w++) {
            t[w] = 0.0;
            if (C > 1) for (int k = 0; k < C; k++) t[w] += parts[at & 1][k][r * W + w];
            else {
                double some[4] = {0.0, 0.0, 0.0, 0.0};
                #pragma unroll
                for (int k = 0; k < WARPS; k++) some[k & 3] += sums[at & 1][r * W + w][k];
                t[w] = (some[0] + some[1]) + (some[2] + some[3]);
            }
            t[w] *= scale;
            for (int q = 0; q < f; q++) t[w] -= basis[i * f + q] * along[q * W + w];
            if (rank == 0 && threadIdx.x < f) rest[w] += basis[i * f + threadIdx.x] * t[w];
            t[w] *= scale;
        }
    };
    // What a group goes through: its inner products are begun, they are added up over warps, and
    // its rows, times what they have met, are added to what comes of it. One group each, or none.
    double dot[R][W][2], sum[R][W];
    auto turn = [&](auto begins, word first, auto adds, word second, auto ends, word third) {
        constexpr bool B = decltype(begins)::yes, A = decltype(adds)::yes, E = decltype(ends)::yes;
        if (B && bytes) await(shared_address(full + first % STAGES), (first / STAGES) & 1);
        if (E && C > 1) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
        #pragma unroll
        for (int r = 0; r < R; r++) {
            double t[W];
            const bool begun = B && r < rows_of(first), ended = E && r < rows_of(third);
            const T* own = held(first) + r * SEGMENT;
            const T* old = held(third) + r * SEGMENT;
            if (E && ended) met(third, r, t);
            for (int w = 0; w < W; w++) {
                if (A) sum[r][w] = dot[r][w][0] + dot[r][w][1];
                if (B) dot[r][w][0] = dot[r][w][1] = 0.0;
            }
            #pragma unroll
            for (int k = 0; k < (K > 5 ? K : 5); k++) {
                const int at = (k * THREADS + threadIdx.x) * V;
                if (B && begun && k < K && at < length) {
                    pack x = *(const pack*)(own + at);
                    #pragma unroll
                    for (int e = 0; e < V; e++)
                        for (int w = 0; w < W; w++)
                            dot[r][w][e & 1] += (double)x.at[e] * mine[w][k][e];
                }
                if (E && ended && k < K && at < length) {
                    pack x = *(const pack*)(old + at);
                    #pragma unroll
                    for (int e = 0; e < V; e++)
                        for (int w = 0; w < W; w++) out[w][k][e] += (double)x.at[e] * t[w];
                }
                if (A && k < 5)
                    for (int w = 0; w < W; w++)
                        sum[r][w] += __shfl_xor_sync(~0u, sum[r][w], 16 >> k);
            }
            if (A && lane == 0)
                for (int w = 0; w < W; w++) sums[second & 1][r * W + w][warp] = sum[r][w];
        }
        if (!A) return;
        __syncthreads();
        if (C > 1) send(second);
    };
    // The place of a group that everybody has left can be filled again.
    auto refill = [&](word left) {
        if (threadIdx.x == 0) load(cluster + ((big)left + STAGES) * clusters, left % STAGES);
    };
    const word own = cluster < groups ? (word)((groups - cluster - 1) / clusters) + 1 : 0;
    const Yes yes; const No no;
#if STAGES > 3 && R < 4
    // Three groups at a time, so that none waits for its sums.
    if (own) turn(yes, 0, no, 0, no, 0);
    if (own > 1) turn(yes, 1, yes, 0, no, 0);
    for (word at = 2; at < own; at++) {
        turn(yes, at, yes, at - 1, yes, at - 2);
        refill(at - 2);
    }
    if (own > 1) turn(no, 0, yes, own - 1, yes, own - 2);
    else if (own) turn(no, 0, yes, 0, no, 0);
    if (own) turn(no, 0, no, 0, yes, own - 1);
#else
    for (word at = 0; at < own; at++) {
        turn(yes, at, no, 0, no, 0);
        turn(no, 0, yes, at, no, 0);
        if (at) refill(at - 1);
        turn(no, 0, no, 0, yes, at);
    }
#endif
    part += cluster * (big)W * (n + f);
    for (int w = 0; w < W; w++) {
        for (int k = 0; k < K; k++) {
            int at = (k * THREADS + threadIdx.x) * V;
            if (at < length)
                for (int e = 0; e < V; e++) part[(big)w * n + from + at + e] = out[w][k][e];
        }
        if (rank == 0 && threadIdx.x < f) part[(big)W * n + threadIdx.x * W + w] = rest[w];
    }
    if (C > 1) {
        // A neighbour may still write to the shared memory of this one.
        asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
        asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    }
}
"""

#: The same for compressed rows, a warp for each; ``I`` is the type of the indices.
SPARSE = r"""
typedef long long big;

extern "C" __global__ void sparse_apply(
    const T* a, const I* column, const I* start, big m, const double* v, double* out) {
    int lane = threadIdx.x & 31;
    big warps = ((big)gridDim.x * blockDim.x) >> 5;
    for (big i = ((big)blockIdx.x * blockDim.x + threadIdx.x) >> 5; i < m; i += warps) {
        double sum[W + 1];
        for (int w = 0; w < W; w++) sum[w] = 0.0;
        for (big k = start[i] + lane; k < start[i + 1]; k += 32)
            for (int w = 0; w < W; w++) sum[w] += (double)a[k] * v[(big)column[k] * W + w];
        for (int w = 0; w < W; w++) {
            for (int d = 16; d; d >>= 1) sum[w] += __shfl_xor_sync(~0u, sum[w], d);
            if (lane == 0) out[i * W + w] = sum[w];
        }
    }
}

// out[j][w] += u[w][i] a_ij, and weight[i] a_ij^2 where there is a place for squares, of columns or
// of all entries.
extern "C" __global__ void sparse_cross(
    const T* a, const I* column, const I* start, big m, const double* u, double* out,
    const double* weight, double* squares, double* total) {
    int lane = threadIdx.x & 31;
    big warps = ((big)gridDim.x * blockDim.x) >> 5;
    double all = 0.0;
    for (big i = ((big)blockIdx.x * blockDim.x + threadIdx.x) >> 5; i < m; i += warps) {
        double own[W + 1];
        for (int w = 0; w < W; w++) own[w] = u[(big)w * m + i];
        double s = weight ? weight[i] : 1.0;
        for (big k = start[i] + lane; k < start[i + 1]; k += 32) {
            double x = (double)a[k];
            big j = column[k];
            for (int w = 0; w < W; w++) atomicAdd(out + j * W + w, own[w] * x);
            if (squares) atomicAdd(squares + j, s * x * x);
            all += s * x * x;
        }
    }
    if (!total) return;
    for (int d = 16; d; d >>= 1) all += __shfl_xor_sync(~0u, all, d);
    if (lane == 0) atomicAdd(total, all);
}

extern "C" __global__ void sparse_gram(
    const T* a, const I* column, const I* start, big m, const double* v, const double* factor,
    const double* basis, int f, const double* along, double* out, double* left) {
    int lane = threadIdx.x & 31;
    big warps = ((big)gridDim.x * blockDim.x) >> 5;
    double rest[W + 1];
    for (int w = 0; w < W; w++) rest[w] = 0.0;
    for (big i = ((big)blockIdx.x * blockDim.x + threadIdx.x) >> 5; i < m; i += warps) {
        double t[W + 1];
        for (int w = 0; w < W; w++) t[w] = 0.0;
        for (big k = start[i] + lane; k < start[i + 1]; k += 32)
            for (int w = 0; w < W; w++) t[w] += (double)a[k] * v[(big)column[k] * W + w];
        double scale = factor ? factor[i] : 1.0;
        for (int w = 0; w < W; w++) {
            for (int d = 16; d; d >>= 1) t[w] += __shfl_xor_sync(~0u, t[w], d);
            t[w] *= scale;
            for (int q = 0; q < f; q++) t[w] -= basis[i * f + q] * along[q * W + w];
            if (lane < f) rest[w] += basis[i * f + lane] * t[w];
            t[w] *= scale;
        }
        for (big k = start[i] + lane; k < start[i + 1]; k += 32)
            for (int w = 0; w < W; w++)
                atomicAdd(out + (big)column[k] * W + w, (double)a[k] * t[w]);
    }
    if (lane < f)
        for (int w = 0; w < W; w++) atomicAdd(left + (big)lane * W + w, rest[w]);
}
"""

#: One step of a Krylov method by one block: a product with a bordered matrix from one with the
#: data, and the next column, orthogonal to those before and of length one.
NEXT = r"""
__device__ __forceinline__ double total(double x, double* room) {
    for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    if ((threadIdx.x & 31) == 0) room[threadIdx.x >> 5] = x;
    __syncthreads();
    x = (threadIdx.x & 31) < THREADS / 32 ? room[threadIdx.x & 31] : 0.0;
    for (int d = 16; d; d >>= 1) x += __shfl_xor_sync(~0u, x, d);
    __syncthreads();
    return x;
}

// image = [first made + second r[n] p; border p'r + corner r[n]], without r where there is none.
// Between the columns that the next one is orthogonal to are their products. The four factors are
// read where the host has written them, so that the same work can be queued again. Entries of made
// and of p are so far apart; image and next are written so far away too, where the host reads them,
// and left out where there is no place for them.
extern "C" __global__ void __launch_bounds__(THREADS) next_column(
    const volatile double* factors, const double* made, int made_step, const double* p, int p_step,
    const double* r, int n, const double* held, int k, double* image, double* next,
    long long away) {
    __shared__ double room[32];
    __shared__ double shared_factors[4];
    if (threadIdx.x < 4) shared_factors[threadIdx.x] = factors[threadIdx.x];
    __syncthreads();
    const double first = shared_factors[0], second = shared_factors[1];
    const double border = shared_factors[2], corner = shared_factors[3];
    double w[ENTRIES], along = 0.0;
    const double last = r ? r[n] : 1.0;
    #pragma unroll
    for (int e = 0; e < ENTRIES; e++) {
        int j = e * THREADS + threadIdx.x;
        w[e] = 0.0;
        if (j < n) {
            double own = p[(long long)j * p_step];
            w[e] = first * made[(long long)j * made_step] + second * last * own;
            if (r) along += own * r[j];
        }
    }
    along = total(along, room);
    #pragma unroll
    for (int e = 0; e < ENTRIES; e++) {
        int j = e * THREADS + threadIdx.x;
        if (j == n) w[e] = border * along + corner * last;
        if (image && j <= n) image[j] = image[j + away] = w[e];
    }
    if (!next) return;
    for (int turn = 0; turn < 2; turn++)
        for (int q = 0; q < k; q++) {
            const double* column = held + 2LL * q * (n + 1);
            double sum = 0.0;
            #pragma unroll
            for (int e = 0; e < ENTRIES; e++) {
                int j = e * THREADS + threadIdx.x;
                if (j <= n) sum += w[e] * column[j];
            }
            sum = total(sum, room);
            #pragma unroll
            for (int e = 0; e < ENTRIES; e++) {
                int j = e * THREADS + threadIdx.x;
                if (j <= n) w[e] -= sum * column[j];
            }
        }
    double square = 0.0;
    #pragma unroll
    for (int e = 0; e < ENTRIES; e++) square += w[e] * w[e];
    double length = sqrt(total(square, room));
    #pragma unroll
    for (int e = 0; e < ENTRIES; e++) {
        int j = e * THREADS + threadIdx.x;
        if (j <= n) next[j] = next[j + away] = w[e] / length;
    }
}
"""
