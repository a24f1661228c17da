// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_STUDENT_H
#define KX_STUDENT_H

/* The t that a variable of Student's distribution with @freedom (at least 1) degrees exceeds with
 * probability @p (below 0.5). */
double kx_student_quantile(double p, unsigned freedom);

#endif
