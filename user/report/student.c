// SPDX-License-Identifier: BSD-2-Clause
#include "report/student.h"

#include <math.h>

#define STEPS	 256 /* of Simpson's rule */
#define HALVINGS 60

/*
 * The integral of cos(x)^@power from @from to pi/2: with t = sqrt(n) tan(x), Student's density is
 * proportional to cos(x)^(n - 1), so this needs no special functions, and a small tail is as exact
 * as a large one. Only the part up to where the integrand has fallen to nothing is summed up.
 */
static double tail_of(double from, unsigned power)
{
	double reach = 40 / sqrt(power + 1.0), to = from + reach < M_PI_2 ? from + reach : M_PI_2;
	double step = (to - from) / STEPS, sum = pow(cos(from), power) + pow(cos(to), power);

	for (int i = 1; i < STEPS; i++)
		sum += (i % 2 ? 4 : 2) * pow(cos(from + i * step), power);
	return sum * step / 3;
}

double kx_student_quantile(double p, unsigned freedom)
{
	double low = 0, high = M_PI_2, all = 2 * tail_of(0, freedom - 1);

	for (int i = 0; i < HALVINGS; i++) {
		double middle = (low + high) / 2;

		if (tail_of(middle, freedom - 1) > p * all)
			low = middle;
		else
			high = middle;
	}
	return sqrt(freedom) * tan(low);
}
