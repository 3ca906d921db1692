/**
 * How many times slower than usual this machine may be: an emulated one sets it (scripts/vm).
 *
 * For what a test cannot wait for as a condition: a deadline that is itself under test, and the time after which
 * something that never comes counts as that.
 */
export const patience = Math.max(1, Number(process.env["CAISSON_TEST_PATIENCE"]) || 1)
