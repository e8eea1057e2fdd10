// The optimizers' updates. Numbers come as f64 and are computed in C.
extern "C" __global__ void descent(u64 n, double rate, T *v, const T *g) {
    C r = (C)rate;
    EACH(i, n) v[i] = Stored<T>::of((C)wide(v[i]) - r * (C)wide(g[i]));
}
extern "C" __global__ void momentum(u64 n, double rate, double mu, u64 nesterov, T *v, T *a, const T *g) {
    C r = (C)rate, m = (C)mu;
    EACH(i, n) {
        C d = wide(g[i]), s = (C)wide(a[i]) * m + d;
        a[i] = Stored<T>::of(s);
        v[i] = Stored<T>::of((C)wide(v[i]) - r * (nesterov ? d + m * s : s));
    }
}
extern "C" __global__ void adam(u64 n, double rate, double beta1, double beta2, double epsilon, u64 nesterov, T *v, T *m,
                                T *w, const T *g) {
    C r = (C)rate, b1 = (C)beta1, b2 = (C)beta2, e = (C)epsilon, one = (C)1;
    EACH(i, n) {
        C d = wide(g[i]), p = wide(m[i]), q = wide(w[i]);
        p = p + (d - p) * (one - b1);
        q = q + (d * d - q) * (one - b2);
        m[i] = Stored<T>::of(p);
        w[i] = Stored<T>::of(q);
        v[i] = Stored<T>::of((C)wide(v[i]) - r * (nesterov ? d * (one - b1) + b1 * p : p) / (root(q) + e));
    }
}
extern "C" __global__ void rms_prop(u64 n, double rate, double rho, double mu, double epsilon, T *v, T *ms, T *mom,
                                    const T *g) {
    C r = (C)rate, o = (C)rho, m = (C)mu, e = (C)epsilon;
    EACH(i, n) {
        C d = wide(g[i]), s = wide(ms[i]);
        s = s + (d * d - s) * ((C)1 - o);
        C p = (C)wide(mom[i]) * m + r * d / root(s + e);
        ms[i] = Stored<T>::of(s);
        mom[i] = Stored<T>::of(p);
        v[i] = Stored<T>::of((C)wide(v[i]) - p);
    }
}
extern "C" __global__ void adagrad(u64 n, double rate, u64 updates, T *v, T *a, const T *g) {
    C r = (C)rate;
    EACH(i, n) {
        C d = wide(g[i]), s = wide(a[i]);
        s = updates ? s + d * d : s;
        a[i] = Stored<T>::of(s);
        v[i] = Stored<T>::of((C)wide(v[i]) - r * d * inverse_root(s));
    }
}
extern "C" __global__ void accumulate(u64 n, double sign, T *v, const T *g) {
    C s = (C)sign;
    EACH(i, n) v[i] = Stored<T>::of((C)wide(v[i]) + s * (C)wide(g[i]));
}
