# A consumer with mysql2's default settings: arguments are the port, the keyspace and how many messages to take.
require "mysql2"

port, keyspace, count = ARGV
client = Mysql2::Client.new(host: "127.0.0.1", port: port.to_i, username: "root", database: keyspace)
left = count.to_i
while left > 0
  rows = client.query("STREAM id, number FROM job LIMIT 7 WAIT 20").to_a
  abort "nothing came" if rows.empty?
  one, *others = rows.map { |row| row["id"] }
  client.query("UPDATE job SET time_acked = NOW() WHERE id = #{one}")
  abort "not acked" unless client.affected_rows == 1
  statement = client.prepare("UPDATE job SET time_acked = NOW() WHERE id = ?")
  others.each do |id|
    statement.execute(id)
    abort "not acked" unless statement.affected_rows == 1
  end
  left -= rows.size
end
puts "ok"
