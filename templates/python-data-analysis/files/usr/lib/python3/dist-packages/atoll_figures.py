"""A Matplotlib backend for programs that nobody watches: show() writes the open figures as PNG.

They become figure-1.png, figure-2.png, ... in /tmp/outputs, whose files are the artifacts of a run.
"""
import itertools
import os

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

OUTPUTS = "/tmp/outputs"

FigureCanvas = FigureCanvasAgg
FigureManager = FigureManagerBase


def show(*_, **__):
    os.makedirs(OUTPUTS, exist_ok=True)
    numbers = itertools.count(1)
    for manager in Gcf.get_all_fig_managers():
        path = next(path for path in (f"{OUTPUTS}/figure-{n}.png" for n in numbers)
                    if not os.path.exists(path))
        manager.canvas.figure.savefig(path)
    Gcf.destroy_all()
