// Elements out of names and texts. Names come from profiled programs, so they only ever become text
// nodes and attribute values; nothing in this page parses markup.

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
}

export function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child instanceof Node) parent.appendChild(child);
    else if (child !== null && child !== undefined && child !== false) parent.appendChild(document.createTextNode(String(child)));
  }
}

export function h(name: string, attributes: Attributes = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

export function s(name: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  fill(element, attributes, children);
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.textContent = '';
  append(parent, children);
}

let ids = 0;
export const freshId = (prefix: string) => `${prefix}-${++ids}`;

export function download(name: string, type: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], {type}));
  const link = h('a', {href: url, download: name}) as HTMLAnchorElement;
  document.body.appendChild(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

// Draws now and whenever the width changes.
export function responsive(className: string, draw: (width: number) => Node): HTMLElement {
  const box = h('div', {class: className});
  let last = 0;
  const observer = new ResizeObserver(entries => {
    const width = Math.floor(entries[0]!.contentRect.width);
    if (width === last || width < 50) return;
    last = width;
    replace(box, draw(width));
  });
  observer.observe(box);
  return box;
}
