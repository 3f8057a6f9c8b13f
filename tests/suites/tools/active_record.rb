# ActiveRecord's calls that look at a whole schema: ruby active_record.rb STEP
require "active_record"

ActiveRecord::Base.establish_connection(
  adapter: "mysql2", host: "127.0.0.1", port: ENV.fetch("PORT").to_i, username: "root", database: ENV.fetch("DATABASE")
)
connection = ActiveRecord::Base.connection
case ARGV.first
when "dump"
  File.open("schema.rb", "w") { |file| ActiveRecord::SchemaDumper.dump(connection, file) }
  puts File.read("schema.rb")
when "load" then connection.disable_referential_integrity { load "./schema.rb" }
when "truncate" then connection.truncate_tables(*connection.tables)
end
