# The tasks of this repository. Each installs what it needs and says so.
#
#   make run         build, publish the bundled documentation, serve it
#   make check       formatting, lints (also of the fuzz targets), API documentation, licences of dependencies
#   make test        all tests: unit tests, integration tests, real clients, a browser
#   make soak        long tests, for hours: a thousand kills, every fault, long random histories
#   make bench       measure, beside nginx where there is something to compare
#   make package     make the Debian package, the image and the rest of a release
#   make advisories  look for known vulnerabilities in dependencies (needs github.com)
#   make reference   write the generated reference pages and licence lists again
.PHONY: run check test soak bench package advisories reference

WAYPOST = target/release/waypost
DEMO = --conf conf/demo/waypost.yaml
DENY = target/clients/cargo-deny/bin/cargo-deny --locked

run:
	@.ci/install build
	cargo build --release --locked
	@$(WAYPOST) publish conf/demo/docs --root conf/demo/docs --project acme $(DEMO)
	@.ci/try
	@exec $(WAYPOST) serve $(DEMO)

# Half of the time of many tests is waiting, so more of them run than there are processors.
test:
	@.ci/install test
	cargo test --locked -- --test-threads=$$(( $$(nproc) * 3 / 2 ))

# `publishing` kills the release build; the other tests run the build of the tests.
soak:
	@.ci/install long
	cargo build --release --locked
	WAYPOST_LONG_TESTS=1 cargo test --locked --test it -- direct:: durability:: publishing:: both_paths:: rendering:: hostile:: acme:: upgrade:: follow:: store_postgres:: queue_postgres:: --include-ignored

check:
	@.ci/install check
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cp Cargo.lock fuzz/Cargo.lock
	cargo clippy --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items
	$(DENY) check licenses bans sources

package:
	packaging/release
	packaging/test

advisories:
	@.ci/install check
	$(DENY) check advisories

reference:
	UPDATE_GOLDEN=1 cargo test --locked --test it reference::

bench:
	@.ci/install bench
	cargo build --profile dist --locked --bin waypost
	benches/peers/run
	benches/peers/search
	cargo bench --locked --bench million
	cargo bench --locked --bench platform
	cargo bench --locked --bench triggers
	cargo bench --locked --bench certificates -- 100000
	cargo bench --locked --bench check
	cargo bench --locked --bench site
	cargo bench --locked --bench search
	cargo bench --locked --bench update
	benches/peers/reader
	benches/peers/design
