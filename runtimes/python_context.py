# The interpreter of a Python context: waits for code, runs it in one lasting namespace and says
# what came of it. What it is told and what it says are lines of fields between tabs, see
# src/sandbox/speech.h. It is told on descriptor 0 and speaks on descriptor 5; both are moved away
# before any code runs, so that a program that reads its input finds none.
#
# With IPython, from the toolbox or else from the image, it is an InteractiveShell: magics, `!cmd`,
# top-level await, rich display. Without it a plain one serves, and says so.


# Imports all that it needs and gives the function that serves, which does not return: an
# interpreter that is started ahead calls the one early and the other when it knows what it is.
# `ahead`: makes the shell too, which takes long and much memory, for others to begin from.
def _atoll_context(ahead=False):
    import ast
    import atexit
    import base64
    import builtins
    import fcntl
    import json
    import linecache
    import os
    import signal
    import stat
    import struct
    import sys
    import time
    import traceback
    import types
    import warnings

    LIMIT = 15 << 20  # bytes of one line, of which atolld takes 16 MiB
    PATIENCE = 0.05  # seconds
    TOOLBOX = "/opt/atoll/usr/lib/python3/dist-packages"

    state = types.SimpleNamespace(run=0, busy=False, failed=None, flush=None, seen=0, code="")

    def move(fd):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 60)
        except OSError:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 6)

    def take_descriptors():
        state.commands, state.speech = move(0), move(5)
        os.close(5)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        state.owner = os.getpid()

    def escape(text):
        text = text.replace("\\", "\\\\").replace("\t", "\\t")
        return text.replace("\n", "\\n").replace("\r", "\\r")

    def unescape(text):
        if "\\" not in text:
            return text
        parts = text.split("\\\\")
        for i, part in enumerate(parts):
            parts[i] = part.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r")
        return "\\".join(parts)

    # What C code has printed is in a buffer of the C library.
    def flush_c():
        if state.seen != len(sys.modules):
            state.seen = len(sys.modules)
            for module in list(sys.modules.values()):
                origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
                if origin.endswith(".so") and "lib-dynload" not in origin or "_ctypes" in origin:
                    import ctypes

                    state.flush = ctypes.CDLL(None).fflush
                    break
        if state.flush:
            state.flush(None)

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # the program has closed or replaced it

    # What is printed and what is said go two ways, and only what the agent has taken has a place.
    # So before a word all that was printed must be gone, and before more is printed the word must
    # be. A thread that prints all the time is not waited for.
    def wait_taken(fd, request, kind):
        if not kind(os.fstat(fd).st_mode):
            return
        end = time.monotonic() + PATIENCE
        while struct.unpack("i", fcntl.ioctl(fd, request, b"\0\0\0\0"))[0] > 0:
            if time.monotonic() > end:
                return
            time.sleep(0.00005)

    def wait_printed():
        for fd in (1, 2):
            try:
                wait_taken(fd, 0x541B, stat.S_ISFIFO)  # FIONREAD
            except OSError:
                pass  # the program has closed it

    def say(*fields):
        line = "\t".join(escape(str(field)) for field in fields) + "\n"
        data = line.encode("utf-8", "replace")
        while data:
            data = data[os.write(state.speech, data) :]

    def speak(*fields):
        flush()
        wait_printed()
        say(*fields)

    def result(bundle, main):
        fields = []
        for kind, data in bundle.items():
            if data is None:
                continue
            if isinstance(data, (bytes, bytearray)):
                data = base64.b64encode(data).decode()
            elif not isinstance(data, str):
                data = json.dumps(data, default=str, allow_nan=False)
            fields += [kind, data]
        if sum(len(field) for field in fields) > LIMIT:
            fields = ["text/plain", "<a result of more than %d bytes>" % LIMIT]
        if fields:
            speak("result", state.run, 1 if main else 0, *fields[:62])
        if not main:
            wait_taken(state.speech, 0x5411, stat.S_ISSOCK)  # SIOCOUTQ

    def error(name, value, trace):
        state.failed = "interrupted" if name == "KeyboardInterrupt" else "exception"
        cut = LIMIT // 4
        speak("error", state.run, name[:1000], value[:cut], trace[-cut:])

    # --- rich results ---------------------------------------------------------------------------

    METHODS = (
        ("text/html", "_repr_html_"),
        ("text/markdown", "_repr_markdown_"),
        ("text/latex", "_repr_latex_"),
        ("image/svg+xml", "_repr_svg_"),
        ("image/png", "_repr_png_"),
        ("image/jpeg", "_repr_jpeg_"),
        ("application/json", "_repr_json_"),
        ("application/javascript", "_repr_javascript_"),
        ("application/pdf", "_repr_pdf_"),
    )

    def bundle_of(value):
        bundle = {}
        if isinstance(value, type):
            return {"text/plain": repr(value)}
        try:
            made = value._repr_mimebundle_(include=None, exclude=None)
            bundle.update(made[0] if isinstance(made, tuple) else made)
        except Exception:
            pass
        for kind, method in METHODS:
            try:
                data = getattr(value, method, lambda: None)()
            except Exception:
                continue
            if isinstance(data, tuple):
                data = data[0]
            if data is not None:
                bundle.setdefault(kind, data)
        try:
            bundle.setdefault("text/plain", repr(value))
        except Exception as failure:
            bundle.setdefault("text/plain", "<repr failed: %s>" % type(failure).__name__)
        return bundle

    # Data beside the picture: what a program that reads results can work with.
    def add_data(value, bundle):
        try:
            pandas = sys.modules.get("pandas")
            if pandas is not None and isinstance(value, pandas.DataFrame):
                text = value.to_json(orient="split", date_format="iso", default_handler=str)
                bundle["application/vnd.atoll.dataframe+json"] = text
            figures = sys.modules.get("matplotlib.figure")
            if figures is not None and isinstance(value, figures.Figure):
                bundle.setdefault("image/png", png_of(value))
                bundle["application/vnd.atoll.chart+json"] = chart_of(value)
        except Exception:
            pass  # the picture is there all the same
        return bundle

    def png_of(figure):
        import io

        out = io.BytesIO()
        figure.savefig(out, format="png", bbox_inches="tight")
        return out.getvalue()

    def display(*values, **_):
        for value in values:
            result(add_data(value, bundle_of(value)), False)

    # --- charts ---------------------------------------------------------------------------------

    def plain(value):
        if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
            value = value.item()
        if hasattr(value, "isoformat"):
            return value.isoformat()
        if isinstance(value, float) and value != value:
            return None
        return value

    def unit_of(label):
        import re

        found = re.search(r"[(\[]([^)\]]+)[)\]]\s*$", label or "")
        return found.group(1) if found else None

    def scale_of(axis):
        import matplotlib.category
        import matplotlib.dates

        if isinstance(axis.converter, matplotlib.category.StrCategoryConverter):
            return "categorical"
        if isinstance(axis.get_major_formatter(), (matplotlib.dates.AutoDateFormatter,
                                                   matplotlib.dates.ConciseDateFormatter)):
            return "datetime"
        return axis.get_scale()

    def axis_values(axis, values):
        if scale_of(axis) == "datetime":
            import matplotlib.dates

            return [matplotlib.dates.num2date(value).isoformat() for value in values]
        if scale_of(axis) == "categorical":
            names = {number: name for name, number in axis.units._mapping.items()}
            return [names.get(int(value), plain(value)) for value in values]
        return [plain(value) for value in values]

    def points_chart(axes, chart, kind, series):
        chart["type"] = kind
        for side in ("x", "y"):
            axis = getattr(axes, side + "axis")
            chart[side + "_ticks"] = [plain(tick) for tick in axis.get_ticklocs()]
            labels = [label.get_text() for label in axis.get_ticklabels()]
            chart[side + "_tick_labels"] = labels
            chart[side + "_scale"] = scale_of(axis)
        for label, xs, ys in series:
            points = zip(axis_values(axes.xaxis, xs), axis_values(axes.yaxis, ys))
            chart["elements"].append({"label": label, "points": [list(point) for point in points]})

    def bar_chart(axes, chart, containers):
        chart["type"] = "bar"
        for container in containers:
            upright = getattr(container, "orientation", "vertical") != "horizontal"
            axis = axes.xaxis if upright else axes.yaxis
            names = {round(float(tick), 6): label.get_text()
                     for tick, label in zip(axis.get_ticklocs(), axis.get_ticklabels())}
            for bar in container.patches:
                middle = bar.get_x() + bar.get_width() / 2
                if not upright:
                    middle = bar.get_y() + bar.get_height() / 2
                name = names.get(round(float(middle), 6)) or str(plain(middle))
                value = bar.get_height() if upright else bar.get_width()
                group = container.get_label()
                chart["elements"].append(
                    {"label": name, "value": plain(value),
                     "group": None if group.startswith("_") else group})

    def pie_chart(chart, wedges):
        chart["type"] = "pie"
        for wedge in wedges:
            chart["elements"].append(
                {"label": wedge.get_label(), "angle": plain(abs(wedge.theta2 - wedge.theta1)),
                 "radius": plain(wedge.r)})

    # A box plot is lines whose places say what they are: of each five-line group the box, the two
    # whiskers, the caps and the median.
    def boxes_of(axes):
        boxes = [patch for patch in axes.patches if type(patch).__name__ == "PathPatch"]
        lines = [list(map(plain, line.get_ydata())) + [line] for line in axes.lines]
        found = []
        outlines = [line for line in lines if len(line) == 6]
        for outline in outlines:
            line = outline.pop()
            low, high = min(outline), max(outline)
            middle = sum(map(float, line.get_xdata()[:2])) / 2
            near = [other for other in axes.lines
                    if other is not line and len(other.get_xdata())
                    and abs(sum(map(float, other.get_xdata())) / len(other.get_xdata()) - middle)
                    < 1e-6]
            whiskers = [float(y) for other in near if len(set(map(float, other.get_xdata()))) == 1
                        and len(other.get_ydata()) == 2 for y in other.get_ydata()]
            medians = [float(other.get_ydata()[0]) for other in near
                       if len(other.get_ydata()) == 2
                       and abs(other.get_xdata()[1] - other.get_xdata()[0])
                       >= abs(line.get_xdata()[1] - line.get_xdata()[0]) - 1e-9]
            fliers = [plain(y) for other in near if other.get_linestyle() == "None"
                      for y in other.get_ydata()]
            found.append({"middle": middle, "min": min(whiskers or [low]), "first_quartile": low,
                          "median": medians[0] if medians else None, "third_quartile": high,
                          "max": max(whiskers or [high]), "outliers": fliers})
        return found if outlines and not boxes else []

    def chart_of_axes(axes):
        chart = {"type": "unknown", "title": axes.get_title() or None, "elements": []}
        pies = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
        bars = [container for container in axes.containers
                if type(container).__name__ == "BarContainer"]
        if not pies:
            for side in ("x", "y"):
                label = getattr(axes, "get_%slabel" % side)() or None
                chart[side + "_label"], chart[side + "_unit"] = label, unit_of(label)
        boxes = [] if pies or bars else boxes_of(axes)
        dots = [dots for dots in axes.collections if type(dots).__name__ == "PathCollection"]
        if pies:
            pie_chart(chart, pies)
        elif bars:
            bar_chart(axes, chart, bars)
        elif boxes:
            chart["type"] = "box_and_whisker"
            names = dict(zip(map(float, axes.get_xticks()),
                             (label.get_text() for label in axes.get_xticklabels())))
            for box in boxes:
                box["label"] = names.get(box.pop("middle"), "")
                chart["elements"].append(box)
        elif axes.lines:
            points_chart(axes, chart, "line",
                         [(line.get_label(), line.get_xdata(orig=False), line.get_ydata(orig=False))
                          for line in axes.lines])
        elif dots:
            points_chart(axes, chart, "scatter",
                         [(dot.get_label(), dot.get_offsets()[:, 0], dot.get_offsets()[:, 1])
                          for dot in dots])
        return chart

    def chart_of(figure):
        charts = [chart_of_axes(axes) for axes in figure.axes]
        if len(charts) == 1:
            return charts[0]
        title = figure._suptitle.get_text() if figure._suptitle else None
        return {"type": "superchart", "title": title, "elements": charts}

    # Figures that are open are shown, by plt.show() or at the end of a run.
    def show_figures(*_, **__):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or not hasattr(pyplot, "get_fignums"):
            return
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            if figure.axes:
                display(figure)
        pyplot.close("all")

    def hook_show():
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None and getattr(pyplot, "show", None) is not show_figures:
            pyplot.show = show_figures

    class ShowHook:
        def find_spec(self, name, path=None, target=None):
            if name != "matplotlib.pyplot":
                return None
            sys.meta_path.remove(self)
            import importlib.util

            spec = importlib.util.find_spec(name)
            execute = spec.loader.exec_module

            def execute_and_hook(module):
                execute(module)
                module.show = show_figures

            spec.loader.exec_module = execute_and_hook
            return spec

    # --- without IPython ------------------------------------------------------------------------

    class PlainShell:
        name = "Python %d.%d.%d, without IPython" % sys.version_info[:3]

        def __init__(self, module):
            self.space = module.__dict__
            self.loop = None
            builtins.display = display
            self.space["_"] = None

        # `!command` and `%cd directory`, for code that is no Python otherwise.
        def translate(self, code):
            lines = []
            for line in code.split("\n"):
                words = line.lstrip()
                indent = line[: len(line) - len(words)]
                if words.startswith("!"):
                    call = "_exit_code = __import__('subprocess').call(%r, shell=True)"
                    line = indent + call % words[1:]
                elif words.startswith("%cd"):
                    place = words[3:].strip() or "~"
                    line = "%s__import__('os').chdir(%r)" % (indent, os.path.expanduser(place))
                lines.append(line)
            return "\n".join(lines)

        def parse(self, code, name):
            try:
                return ast.parse(code, name)
            except SyntaxError:
                translated = self.translate(code)
                if translated == code:
                    raise
                return ast.parse(translated, name)

        def evaluate(self, tree, name, mode):
            code = compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
            value = eval(code, self.space)
            if code.co_flags & 0x80:  # CO_COROUTINE
                if self.loop is None:
                    import asyncio

                    self.loop = asyncio.new_event_loop()
                    asyncio.set_event_loop(self.loop)
                value = self.loop.run_until_complete(value)
            return value

        def run(self, code):
            name = "<run %s>" % state.run
            linecache.cache[name] = (len(code), None, code.splitlines(True), name)
            tree = self.parse(code, name)
            last = None
            ends_quietly = code.rstrip().endswith(";")
            if tree.body and isinstance(tree.body[-1], ast.Expr) and not ends_quietly:
                last = ast.Expression(tree.body.pop().value)
            if tree.body:
                self.evaluate(tree, name, "exec")
            if last is None:
                return
            value = self.evaluate(last, name, "eval")
            if value is not None:
                self.space["_"] = value
                result(add_data(value, bundle_of(value)), True)

        def rehearse(self):
            pass

        def report(self, failure):
            trace = failure.__traceback__
            while trace and not trace.tb_frame.f_code.co_filename.startswith("<run "):
                trace = trace.tb_next
            text = "".join(traceback.format_exception(type(failure), failure, trace))
            error(type(failure).__name__, str(failure), text)

        def complete(self, code, cursor):
            import re
            import rlcompleter

            word = re.search(r"[\w.]*$", code[:cursor]).group(0)
            completer = rlcompleter.Completer(self.space)
            matches = []
            while len(matches) < 200:
                match = completer.complete(word, len(matches))
                if match is None:
                    break
                matches.append(match)
            return cursor - len(word), matches if word else []

    # --- with IPython ---------------------------------------------------------------------------

    def make_ipython(module):
        import shutil
        import tempfile

        from IPython.core.displayhook import DisplayHook
        from IPython.core.displaypub import DisplayPublisher
        from IPython.core.formatters import DisplayFormatter
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.lib.pretty import _type_pprinters as type_printers
        from traitlets.config import Config

        class Hook(DisplayHook):
            def quiet(self):
                return state.code.rstrip().endswith(";")

            def start_displayhook(self):
                pass

            def write_output_prompt(self):
                pass

            def write_format_data(self, format_dict, md_dict=None):
                result(format_dict, True)

            def finish_displayhook(self):
                pass

        class Publisher(DisplayPublisher):
            def publish(self, data, metadata=None, *arguments, **names):
                result(dict(data), False)

        class Formatter(DisplayFormatter):
            # Numbers and texts are asked of a dozen formatters, which takes as long as all the rest
            # of a run; not while nobody has told one of them otherwise.
            def is_plain(self, kind):
                if kind not in (int, bool, str):
                    return False
                for name, formatter in self.formatters.items():
                    usual = type_printers.get(kind) if name == "text/plain" else None
                    if formatter.type_printers.get(kind) is not usual:
                        return False
                return True

            def format(self, value, include=None, exclude=None):
                if not include and not exclude and self.is_plain(type(value)):
                    return {"text/plain": repr(value)}, {}
                bundle, details = super().format(value, include, exclude)
                return add_data(value, dict(bundle)), details

        class Shell(InteractiveShell):
            def init_display_formatter(self):
                self.display_formatter = Formatter(parent=self)
                self.configurables.append(self.display_formatter)

            # What is Python as it stands means no magic, and to find that out takes IPython longer
            # than most runs.
            def transform_cell(self, code):
                try:
                    ast.parse(code)
                    return code if code.endswith("\n") else code + "\n"
                except (SyntaxError, ValueError):
                    return super().transform_cell(code)

            def _showtraceback(self, etype, evalue, stb):
                error(etype.__name__, str(evalue), "\n".join(stb))

            def init_virtualenv(self):
                pass

        settings = Config()
        settings.HistoryManager.enabled = False
        settings.HistoryAccessor.enabled = False
        settings.IPCompleter.use_jedi = False  # which keeps files in the home
        settings.InteractiveShell.colors = "NoColor"
        settings.InteractiveShell.cache_size = 1000
        settings.InteractiveShell.xmode = "Context"
        directory = tempfile.mkdtemp(prefix="atoll-")  # it insists on one
        os.environ["IPYTHONDIR"] = directory
        try:
            shell = Shell.instance(config=settings, user_module=module, user_ns=module.__dict__,
                                   ipython_dir=directory, displayhook_class=Hook,
                                   display_pub_class=Publisher)
        finally:
            os.environ.pop("IPYTHONDIR", None)
            shutil.rmtree(directory, ignore_errors=True)
        atexit.unregister(shell.atexit_operations)
        raw = shell.system_raw

        def system(command):
            flush()
            raw(command)

        shell.system = system
        shell.display_formatter.active_types = shell.display_formatter.format_types
        for kind in ("application/json",):
            shell.display_formatter.formatters[kind].enabled = True

        def show(figure):
            return png_of(figure)

        png = shell.display_formatter.formatters["image/png"]
        png.for_type_by_name("matplotlib.figure", "Figure", show)
        return shell

    class RichShell:
        def __init__(self, module):
            import IPython

            self.shell = make_ipython(module)
            versions = (*sys.version_info[:3], IPython.__version__)
            self.name = "Python %d.%d.%d, IPython %s" % versions

        def run(self, code):
            state.code = code
            done = self.shell.run_cell(code, store_history=True)
            # What was raised is reported by then.
            if not done.success and state.failed is None:
                failure = done.error_before_exec or done.error_in_exec
                error(type(failure).__name__, str(failure), "")

        # The first time takes ten times as long as the second.
        def rehearse(self):
            self.shell.run_cell("pass", store_history=False)
            self.shell.display_formatter.format(1)
            try:
                raise ValueError
            except ValueError:
                self.shell.InteractiveTB.structured_traceback(*sys.exc_info())

        def report(self, failure):
            self.shell.showtraceback((type(failure), failure, failure.__traceback__))

        def complete(self, code, cursor):
            line = code[code.rfind("\n", 0, cursor) + 1 : cursor]
            word, matches = self.shell.complete(None, line, len(line))
            return cursor - len(word), list(matches)[:200]

    # Bytecode for this very interpreter is there: it is one that the toolbox was made for.
    def toolbox_fits():
        import importlib.util

        return os.path.exists(importlib.util.cache_from_source(TOOLBOX + "/IPython/__init__.py"))

    # IPython finds what it needs in the toolbox first, whatever the image has; what the user's code
    # imports is the image's where it has one, but for what must be the same for both.
    def make_toolbox_shell(module):
        import importlib.machinery

        path = list(sys.path)
        sys.path.insert(0, TOOLBOX)
        try:
            return RichShell(module)
        finally:
            sys.path.remove(TOOLBOX)
            sys.path.append(TOOLBOX)
            for package in toolbox_packages() - {"IPython", "traitlets", "matplotlib_inline"}:
                if importlib.machinery.PathFinder.find_spec(package, path):
                    forget(package)

    def toolbox_packages():
        packages = set()
        for name, module in list(sys.modules.items()):
            origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
            if origin.startswith(TOOLBOX):
                packages.add(name.partition(".")[0])
        return packages

    def forget(package):
        return {name: sys.modules.pop(name) for name in list(sys.modules)
                if name.partition(".")[0] == package}

    def make_shell(module):
        if toolbox_fits():
            try:
                return make_toolbox_shell(module)
            except Exception:
                pass  # the image's own may do
        try:
            return RichShell(module)
        except Exception:
            return PlainShell(module)

    # A shell that is there before it is known whether this becomes a context. What making it has
    # changed for everybody is taken back, so that a program finds the interpreter it expects, and
    # done again for a context.
    class ShellAhead:
        def __init__(self, module):
            places = (vars(sys), vars(builtins))
            before = [dict(place) for place in places]
            lists = (sys.path, sys.meta_path, warnings.filters)
            contents = [list(one) for one in lists]
            main = sys.modules["__main__"]
            self.shell = make_shell(module)
            self.shell.rehearse()
            # It keeps one open, and a process that does cannot be copied.
            self.io = sys.modules.get("IPython.utils.io")
            if self.io is not None:
                self.io.devnull.close()
            self.changes = [(place, name, place[name])
                            for place, old in zip(places, before) for name in list(place)
                            if old.get(name, self) is not place[name]]
            self.lists = [(one, list(one)) for one in lists]
            self.modules = {}
            for package in toolbox_packages():
                self.modules.update(forget(package))
            sys.modules["__main__"] = main
            for place, name, _ in self.changes:
                del place[name]
            for place, old in zip(places, before):
                place.update(old)
            for one, content in zip(lists, contents):
                one[:] = content
            warnings._filters_mutated()

        def show(self):
            if self.io is not None:
                self.io.devnull = open(os.devnull, "w", encoding="utf-8")
            sys.modules.update(self.modules)
            for place, name, value in self.changes:
                place[name] = value
            for one, content in self.lists:
                one[:] = content
            warnings._filters_mutated()
            return self.shell

    # --- what it is told ------------------------------------------------------------------------

    def interrupted(*_):
        if state.busy:
            raise KeyboardInterrupt

    # atolld sends no interrupt before it is told that the run has begun: then it is not ignored.
    def interruptible(number, act):
        try:
            state.busy = True
            say("begun", number)
            act()
            show_figures()
        finally:
            state.busy = False

    def with_variables(variables, act):
        saved = {}
        for variable in variables:
            name, _, value = variable.partition("=")
            saved[name] = os.environ.get(name)
            os.environ[name] = value
        try:
            act()
        finally:
            state.busy = False  # an interrupt may have come in the midst of saying so
            for name, value in saved.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def run(shell, number, code, variables):
        state.run, state.failed = number, None
        try:
            with_variables(variables, lambda: interruptible(number, lambda: shell.run(code)))
        except BaseException as failure:
            state.busy = False
            if state.failed is None:
                try:
                    shell.report(failure)
                except BaseException:
                    error(type(failure).__name__, str(failure), "")
        if os.getpid() != state.owner:  # a copy of us that the code has made
            flush()
            os._exit(0)
        flush_c()
        speak("end", number, state.failed or "ok")

    def complete(shell, number, code):
        state.run = number
        try:
            start, matches = shell.complete(code, len(code))
        except Exception:
            start, matches = 0, []
        answer = {"start": start, "matches": matches}
        result({"application/vnd.atoll.completion+json": answer}, True)
        speak("end", number, "ok")

    def lines():
        rest = b""
        while True:
            end = rest.find(b"\n")
            if end < 0:
                piece = os.read(state.commands, 65536)
                if not piece:
                    return
                rest += piece
                continue
            line, rest = rest[:end], rest[end + 1 :]
            yield [unescape(field) for field in line.decode("utf-8", "surrogateescape").split("\t")]

    def set_environment(variables):
        for name in list(os.environ):
            if name not in ("HOME", "USER", "LOGNAME", "SHELL"):  # of the user; may be given too
                del os.environ[name]
        for variable in variables:
            name, _, value = variable.partition("=")
            os.environ[name] = value
        os.environ.setdefault("MPLBACKEND", "agg")

    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    waiting = ShellAhead(module) if ahead else None

    def serve():
        take_descriptors()
        sys.argv[:] = [""]
        sys.stdout.reconfigure(line_buffering=True)
        sys.meta_path.insert(0, ShowHook())
        signal.signal(signal.SIGINT, interrupted)
        shell = waiting.show() if waiting else make_shell(module)
        sys.modules["__main__"] = module
        hook_show()
        for told in lines():
            if told[0] == "start":
                set_environment(told[1:])
                speak("ready", shell.name, "begun")
            elif told[0] == "run":
                run(shell, told[1], told[2], told[3:])
            elif told[0] == "complete":
                complete(shell, told[1], told[2])
        os._exit(0)

    return serve
