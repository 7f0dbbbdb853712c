"""``adapt`` on arrays: a module in, the same with a domain and a table out."""

import subprocess
import sys

import torch
from test_grow import images, module

import simic_engine as se


def test_an_adapted_module_reads_the_new_images_by_its_domain_and_is_inside_bit_for_bit():
    x, y = images(60, 1)
    given = module()
    inputs = (torch.from_numpy(x[:, None]) / 255 - 0.5) / 0.25
    with torch.no_grad():
        before = given(inputs)
    quick = {"rates": [0.05], "threads": 2, "seed": 3, "set": {"run.max_steps": 2}}

    adapted = se.adapt(given, x, y, normalise=((0.5,), (0.25,)), domain="bright", test=images(90, 2), **quick)

    assert (adapted.domain, adapted.table[0]["name"], adapted.table[0]["added"]) == ("bright", "as given", 0)
    assert {row["keeps"] for row in adapted.table} == {True, False} and all("test" in row for row in adapted.table)
    assert adapted.why[1:] in str(adapted)
    network = adapted.network
    assert torch.allclose(adapted.normalise(torch.from_numpy(x[..., None])), inputs, atol=1e-5)
    with torch.no_grad():
        first, of_domain, again = network(inputs), network(inputs, domain="bright"), network(inputs)
    assert torch.equal(first, before) and torch.equal(again, before)
    assert of_domain.shape == (60, 3)
    certificate = [sys.executable, str(adapted.folder / "network.py"), "--certificate"]
    certified = subprocess.run(certificate, capture_output=True, text=True)
    assert certified.returncode == 0, certified.stdout + certified.stderr
