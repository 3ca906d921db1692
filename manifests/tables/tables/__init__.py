"""Tables of separated values, read and written a row at a time."""
import csv
import os


def _dialect(path, delimiter):
    if delimiter is not None:
        return {"delimiter": delimiter}
    return {"delimiter": "\t" if os.path.splitext(path)[1].lower() in (".tsv", ".tab") else ","}


def read(path, delimiter=None, offset=0, limit=1000):
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file, **_dialect(path, delimiter))
        columns = next(reader, [])
        rows, total = [], 0
        for row in reader:
            if offset <= total < offset + limit:
                rows.append(row)
            total += 1
    return {"columns": columns, "rows": rows, "total": total}


def write(path, columns, rows, delimiter=None):
    uneven = next((number for number, row in enumerate(rows) if len(row) != len(columns)), None)
    if uneven is not None:
        raise ValueError(f"row {uneven} has another number of values than there are columns")
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n", **_dialect(path, delimiter))
        writer.writerow(columns)
        writer.writerows(rows)
    return {"rows": len(rows)}
