# The front door; behind it cargo is the task runner.
#
#   make run     build, publish the bundled example, serve it, print what to try
#   make test    everything: unit, integration, real clients
#   make check   formatting, lints, documentation, the shipped configurations
#   make bench   measured beside nginx, ratios in one run
.PHONY: run test check bench

WAYPOST = target/release/waypost
DEMO = --conf conf/demo/waypost.yaml

run:
	@.ci/install build
	cargo build --release --locked
	@$(WAYPOST) publish conf/demo/docs --root conf/demo/docs --project acme $(DEMO)
	@.ci/try
	@exec $(WAYPOST) serve $(DEMO)

test:
	@.ci/install test
	cargo build --release --locked
	cargo test --locked

check:
	@.ci/install build
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

bench:
	@.ci/install bench
	cargo build --release --locked
	benches/peers/run
	cargo bench --locked --bench million
	cargo bench --locked --bench platform
	cargo bench --locked --bench triggers
	cargo bench --locked --bench check
	cargo bench --locked --bench site
