"""The JavaScript that is run in a page.

`IN_PAGE` runs before the page's own scripts, in their world: it switches off what would leave the
page. All else runs in a world of its own, in which the page's scripts have changed nothing.
"""

from __future__ import annotations

WORLD = "mannerly"

IN_PAGE = """(() => {
  const off = (owner, name, value) => {
    try { Object.defineProperty(owner, name, {value, configurable: false, writable: false}); }
    catch {}
  };
  const refuse = () => Promise.reject(new DOMException('switched off', 'SecurityError'));
  if (typeof ServiceWorkerContainer !== 'undefined')
    off(ServiceWorkerContainer.prototype, 'register', refuse);
  off(window, 'open', () => null);
  off(window, 'alert', () => undefined);
  off(window, 'confirm', () => false);
  off(window, 'prompt', () => null);
  off(window, 'print', () => undefined);
})()"""

# When the DOM was changed last, in the time of the page.
OBSERVE = """globalThis.changed = 0;
new MutationObserver(() => { globalThis.changed = performance.now(); })
  .observe(document, {subtree: true, childList: true, characterData: true});"""

# Milliseconds since the last change, and whether the selector matches.
INSPECT = """((selector) => {
  let found = true;
  if (selector !== null) {
    try { found = document.querySelector(selector) !== null; } catch { found = false; }
  }
  return [performance.now() - (globalThis.changed || 0), found];
})(%s)"""

# The final DOM as HTML, cut at so many characters. What is in open shadow roots is written in place
# of their hosts' content, with slots filled, as a person sees it. `noscript` is for others.
READ = """((limit) => {
  const root = document.documentElement;
  if (root === null) return ['', false];
  for (const each of root.querySelectorAll('noscript')) each.remove();
  const hosts = new Set();
  const find = (scope) => {
    for (const each of scope.querySelectorAll('*'))
      if (each.shadowRoot) { hosts.add(each); find(each.shadowRoot); }
  };
  find(document);
  let text;
  if (hosts.size === 0) text = root.outerHTML;
  else {
    const inert = document.implementation.createHTMLDocument('');
    const escape = (data) =>
      data.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
    const parts = [];
    const write = (node) => {
      if (node.nodeType === 3) { parts.push(escape(node.data)); return; }
      if (node.nodeType !== 1) return;
      if (node.localName === 'slot' && node.getRootNode() instanceof ShadowRoot) {
        const given = node.assignedNodes();
        for (const each of given.length ? given : node.childNodes) write(each);
        return;
      }
      const isPlain = !hosts.has(node) && !node.querySelector('slot')
        && !Array.from(hosts).some((host) => node.contains(host));
      if (isPlain) { parts.push(node.outerHTML); return; }
      const shell = inert.importNode(node, false).outerHTML;
      const end = shell.lastIndexOf('</');
      parts.push(end < 0 ? shell : shell.slice(0, end));
      for (const each of (node.shadowRoot || node).childNodes) write(each);
      if (end >= 0) parts.push(shell.slice(end));
    };
    write(root);
    text = parts.join('');
  }
  const isCut = text.length > limit;
  return ['<!DOCTYPE html>' + (isCut ? text.slice(0, limit) : text).toWellFormed(), isCut];
})(%d)"""

# A tab is used for the next page of its site: nothing of this one is left.
FORGET = "try { sessionStorage.clear(); } catch {} window.name = '';"
