// A table whose rows are kept by key and whose cells are changed in place; sorted by its heads' buttons.

import { classed, h, say } from "./dom.js";

// columns: {label, help, key, show, num, text, wrap, value, update, make}; *show* makes the text of a value, *help* explains it.
export class Table {
  constructor(label, columns, keyOf, { tone = () => "", sort = 0, down = false, empty }) {
    Object.assign(this, { columns, keyOf, tone, empty, sort, down, rows: new Map(), records: [] });
    this.heads = columns.map((column, index) => {
      const of = { scope: "col", class: column.num ? "num" : null, title: column.help };
      if (column.make) return h("th", of, h("span", {}, column.label));
      return h("th", of, h("button", { type: "button", "aria-description": column.help, onclick: () => this.sortBy(index) }, column.label));
    });
    this.body = h("tbody");
    this.none = h("p", { class: "note" }, empty);
    this.scroll = h("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": label },
      h("table", {}, h("caption", { hidden: true }, label), h("thead", {}, h("tr", {}, ...this.heads)), this.body));
    const explained = columns.filter((column) => column.help);
    this.help = h("details", { class: "note" }, h("summary", {}, `What the columns of ${label} mean`),
      h("dl", {}, ...explained.flatMap((column) => [h("dt", {}, column.label), h("dd", {}, column.help)])));
    this.element = h("div", {}, this.scroll, this.none, this.help);
    this.mark();
  }

  sortBy(index) {
    this.down = this.sort === index ? !this.down : Boolean(this.columns[index].num);
    this.sort = index;
    this.mark();
    this.update(this.records);
  }

  mark() {
    this.heads.forEach((head, index) => {
      if (index === this.sort) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  order(a, b) {
    const column = this.columns[this.sort];
    const [x, y] = [a, b].map((each) => (column.value ? column.value(each) : each[column.key]));
    // What is not known stands last, whichever way.
    if (x == null || y == null) return (x == null) - (y == null);
    const way = typeof x === "string" ? x.localeCompare(y) : x - y;
    return (this.down ? -way : way) || this.keyOf(a).localeCompare(this.keyOf(b));
  }

  update(records) {
    this.records = records;
    this.scroll.hidden = this.help.hidden = !records.length;
    this.none.hidden = records.length > 0;
    const sorted = [...records].sort((a, b) => this.order(a, b));
    const gone = new Set(this.rows.keys());
    let before = null;
    for (const record of sorted) {
      const key = this.keyOf(record);
      gone.delete(key);
      let row = this.rows.get(key);
      if (!row) {
        row = h("tr", {}, ...this.columns.map((column, index) => {
          const kind = column.wrap ? "num wrap" : column.num ? "num" : column.text ? "text" : null;
          const cell = h(index ? "td" : "th", { class: kind, scope: index ? null : "row" });
          if (column.make) cell.append(column.make(record));
          return cell;
        }));
        this.rows.set(key, row);
      }
      classed(row, this.tone(record));
      this.columns.forEach((column, index) => {
        if (column.update) column.update(row.cells[index], record);
        else if (!column.make) say(row.cells[index], (column.show ?? String)(record[column.key] ?? null));
      });
      const place = before ? before.nextSibling : this.body.firstChild;
      if (place !== row) this.body.insertBefore(row, place);
      before = row;
    }
    for (const key of gone) {
      this.rows.get(key).remove();
      this.rows.delete(key);
    }
  }
}
