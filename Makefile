# The way in. Everything is also a plain command: see the recipes.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build quickstart check one test test-long bench lint coverage format down clean install images

PREFIX ?= /usr/local
PROGRAMS := atoll atolld atoll-warden atoll-agent atoll-sudo atoll-notary atoll-builder atoll-egress
RELEASE := build/release
# Whose images `make images` builds.
IMAGES ?= python toolbox

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

setup:
	@tools/setup build

build: setup ## build the programs into build/release/bin
	@tools/build $(PROGRAMS) selftest-image

# Built once; a template that did not change costs some milliseconds. Tests build their own (tools/test).
images:
	@cmake --preset release >/dev/null
	@cmake --build --preset release --target atoll-builder >/dev/null
	@for name in $(IMAGES); do tools/build-template "templates/$$name" build/images; done

quickstart: setup ## start Atoll on 127.0.0.1:4700 and run the first sandbox
	@tools/build $(PROGRAMS)
	@tools/quickstart

check: ## seconds: unit tests of what changed (or FOLDERS="store http") and of its users, tidy
	@tools/check $(FOLDERS)

one: ## tests by name: make one T='WarmPools.*' or T=RunTest.test_output
	@tools/check --one '$(T)'

test: ## run the tests that every change must pass; the last line counts them
	@timeout 900 tools/setup test
	@tools/test

test-long: ## all tests, in their long variants, and in a guest with Linux 6.1; or PARTS="gvisor agent"
	@timeout 900 tools/setup test-long
	@tools/test --long $(PARTS)

bench: ## measure what SPECIFICATION.md promises, next to peers
	@tools/setup bench
	@cmake --preset release >/dev/null
	@cmake --build --preset release
	@$(MAKE) --no-print-directory images
	@bench/run --chart docs/speed.svg

lint: ## clang-tidy over what changed, or over everything: make lint ALL=1
	@timeout 900 tools/setup lint
	@tools/lint $(if $(ALL),--all)

coverage: ## lines of each folder of src/ that its unit tests run; or FOLDERS="base store"
	@timeout 900 tools/setup coverage
	@tools/coverage $(FOLDERS)

format: ## format the C++ sources
	@git ls-files --cached --others --exclude-standard '*.cc' '*.h' | xargs clang-format-14 -i

down: ## stop Atoll and remove every sandbox
	@if [[ -x $(RELEASE)/bin/atoll ]]; then $(RELEASE)/bin/atoll down; else echo "nothing is built"; fi

clean: ## remove build/ (stop Atoll first: make down)
	@rm -rf build

install: build ## install the programs, the selftest and the systemd unit (PREFIX=/usr/local, DESTDIR=)
	@for program in $(PROGRAMS); do \
	  install -D -m 755 $(RELEASE)/bin/$$program $(DESTDIR)$(PREFIX)/bin/$$program; done
	@for file in image.erofs digest template.toml victims.tsv; do \
	  install -D -m 644 $(RELEASE)/share/atoll/selftest/$$file \
	    $(DESTDIR)$(PREFIX)/share/atoll/selftest/$$file; done
	@install -d $(DESTDIR)$(PREFIX)/share/atoll
	@cp -rT templates $(DESTDIR)$(PREFIX)/share/atoll/templates
	@install -d $(DESTDIR)/etc/systemd/system
	@sed 's|/usr/local|$(PREFIX)|g' deploy/atoll.service >$(DESTDIR)/etc/systemd/system/atoll.service
	@echo "installed; next: systemctl enable --now atoll && atoll template build toolbox && atoll template build python"
