// A table people can sort, page through and take away.
import {Child, download, h, replace} from './dom';

export interface Column<Row> {
  title: string;
  value: (row: Row) => number | string;          // what is sorted by and exported
  show?: (row: Row) => Child;                     // what is seen; the value when absent
  bar?: (row: Row) => number;                     // 0 … 1, drawn behind the figure
  tone?: (row: Row) => string;                    // a class for the bar: gain or loss
  wide?: boolean;                                 // takes the room that is left
  minor?: boolean;                                // left out where there is little room
  title_?: string;                                // explains the heading
}

export interface TableOptions<Row> {
  name: string;           // of the files it is saved as
  caption: string;        // read by screen readers, printed
  rowsPerPage?: number;
  sort?: number;          // column, falling
  order?: (row: Row) => number;  // falling, until a heading is chosen
  empty?: string;         // instead of no rows
  onPick?: (row: Row) => void;
  picked?: (row: Row) => boolean;
  note?: Child;
}

const numeric = (value: number | string): value is number => typeof value === 'number';

function csvCell(value: number | string): string {
  let text = String(value);
  // A spreadsheet takes these first characters for a formula.
  if (!numeric(value) && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function table<Row>(columns: Column<Row>[], rows: Row[], options: TableOptions<Row>): HTMLElement {
  const perPage = options.rowsPerPage ?? 12;
  let sort = options.sort ?? -1, falling = true, shown = perPage, chosen = false;
  const box = h('div', {class: 'table'});

  const key = (): (row: Row) => number | string => !chosen && options.order ? options.order : columns[sort]!.value;
  const sorted = (list: Row[]): Row[] => {
    if (sort < 0) return list;
    const value = key();
    const keyed = list.map(row => ({row, key: value(row)}));
    keyed.sort((a, b) => {
      const x = a.key, y = b.key;
      const sign = numeric(x) && numeric(y) ? x - y : String(x) < String(y) ? -1 : String(x) > String(y) ? 1 : 0;
      return falling ? -sign : sign;
    });
    return keyed.map(entry => entry.row);
  };
  // Of many rows only those that are seen are put in order.
  const first = (): Row[] => {
    if (sort < 0 || rows.length < 4 * shown || !numeric(key()(rows[0]!))) return sorted(rows).slice(0, shown);
    const value = key(), keys = Float64Array.from(rows, row => value(row) as number);
    const ordered = keys.slice().sort();
    const limit = falling ? ordered[ordered.length - shown]! : ordered[shown - 1]!;
    return sorted(rows.filter((_, i) => falling ? keys[i]! >= limit : keys[i]! <= limit)).slice(0, shown);
  };
  const heading = (column: Column<Row>, index: number) => h('th',
    {scope: 'col', class: (column.wide ? 'wide' : 'figure') + (column.minor ? ' minor' : ''), 'aria-sort': sort === index ? (falling ? 'descending' : 'ascending') : 'none'},
    h('button', {type: 'button', title: column.title_ ?? `Sort by ${column.title}`, onclick: () => {
      falling = sort === index ? !falling : true;
      sort = index;
      chosen = true;
      draw();
    }}, column.title, h('span', {class: 'arrow', 'aria-hidden': 'true'}, sort === index ? (falling ? ' ▾' : ' ▴') : '')));
  const cell = (column: Column<Row>, row: Row, index: number) => {
    const content = column.show ? column.show(row) : String(column.value(row));
    const share = column.bar ? Math.max(0, Math.min(1, column.bar(row))) : 0;
    const style = column.bar ? `--share:${(100 * share).toFixed(1)}%` : null;
    const inner = index === 0 && options.onPick
      ? h('button', {type: 'button', class: 'pick', 'aria-pressed': String(options.picked?.(row) ?? false),
                     onclick: (event: Event) => { event.stopPropagation(); options.onPick!(row); }}, content)
      : content;
    return h('td', {class: (column.wide ? 'wide' : 'figure') + (column.bar ? ' bar' : '') + (column.minor ? ' minor' : '') + (column.tone ? ' ' + column.tone(row) : ''), style}, inner);
  };
  // The whole row can be clicked; its first cell is a button for those who have no pointer.
  const line = (row: Row) => {
    const element = h('tr', {class: (options.picked?.(row) ? 'picked ' : '') + (options.onPick ? 'pickable' : ''), onclick: options.onPick ? () => options.onPick!(row) : null},
      columns.map((column, index) => cell(column, row, index)));
    (element as any).row = row;
    return element;
  };
  const save = (kind: 'csv' | 'json') => {
    const lines = sorted(rows).map(row => columns.map(column => column.value(row)));
    if (kind === 'csv')
      download(`${options.name}.csv`, 'text/csv',
               [columns.map(column => column.title), ...lines].map(line => line.map(csvCell).join(',')).join('\r\n') + '\r\n');
    else
      download(`${options.name}.json`, 'application/json', JSON.stringify(
        lines.map(line => Object.fromEntries(line.map((value, i) => [columns[i]!.title, value]))), null, 1) + '\n');
  };
  const draw = () => {
    const visible = first();
    replace(box,
      h('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': options.caption},
        h('table', {},
          h('caption', {class: 'unseen'}, options.caption),
          h('thead', {}, h('tr', {}, columns.map(heading))),
          h('tbody', {}, visible.map(line)))),
      rows.length === 0 && h('p', {class: 'quiet'}, options.empty ?? 'None.'),
      h('div', {class: 'under'},
        h('span', {class: 'quiet'}, rows.length > shown ? `${shown} of ${rows.length} rows` : rows.length === 1 ? '1 row' : `${rows.length} rows`,
          options.note ? ' · ' : '', options.note ?? ''),
        rows.length > shown && h('button', {type: 'button', onclick: () => { shown += 5 * perPage; draw(); }}, 'More'),
        shown > perPage && h('button', {type: 'button', onclick: () => { shown = perPage; draw(); }}, 'Fewer'),
        h('button', {type: 'button', class: 'save', 'aria-label': `Save ${options.caption} as CSV`, onclick: () => save('csv')}, 'CSV'),
        h('button', {type: 'button', class: 'save', 'aria-label': `Save ${options.caption} as JSON`, onclick: () => save('json')}, 'JSON')));
  };
  draw();
  return box;
}

// The table behind a chart, made when it is first opened.
export function behind<Row>(columns: Column<Row>[], rows: Row[] | (() => Row[]), options: TableOptions<Row>): HTMLElement {
  const details = h('details', {class: 'behind'}, h('summary', {}, 'Table'));
  details.addEventListener('toggle', () => {
    if (details.childElementCount === 1) details.appendChild(table(columns, typeof rows === 'function' ? rows() : rows, options));
  });
  return details;
}
